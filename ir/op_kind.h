// OpKind: the closed set of ops, one enumerator per row of ops.def.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace cgc::ir {

enum class OpKind : uint16_t {
#define CGC_OP(Enum, text) Enum,
#include "ir/ops.def"
};

inline constexpr unsigned kNumOps = 0
#define CGC_OP(Enum, text) +1
#include "ir/ops.def"
    ;

/// Returns the name in IR text, for example "aten.layer_norm".
llvm::StringRef opName(OpKind op);
/// Returns nullopt for an unknown name.
std::optional<OpKind> parseOpName(llvm::StringRef name);

} // namespace cgc::ir

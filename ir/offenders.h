// Offenders: why a part of a model cannot be captured into a CUDA graph, from the table
// offenders.def.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace cgc::ir {

/// One for each row of the table; None for what is wrong in another way, such as shapes that do
/// not fit.
enum class Cause : uint8_t {
  None,
#define CGC_CAUSE(Enum, id, why, fix) Enum,
#define CGC_OFFENDER(op, cause)
#include "ir/offenders.def"
};

/// A row of the table; empty texts for None.
struct CauseText {
  llvm::StringRef id, why, fix;
};
const CauseText &textOf(Cause cause);
/// None for an unknown id.
Cause parseCause(llvm::StringRef id);

/// "what: why".
std::string explain(llvm::StringRef what, Cause cause);

/// Why an op of TorchScript ("aten::nonzero", "aten::bernoulli_") cannot be compiled: its row's
/// cause, else NoRule.
Cause causeOf(llvm::StringRef op);

} // namespace cgc::ir

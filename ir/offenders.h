// Offenders: why part of a model cannot be captured into a CUDA graph, from the table
// offenders.def.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace cgc::ir {

/// One enumerator per row of the table. None marks other errors, such as mismatched shapes.
enum class Cause : uint8_t {
  None,
#define CGC_CAUSE(Enum, id, why, fix) Enum,
#define CGC_OFFENDER(op, cause)
#include "ir/offenders.def"
};

/// A row of the table; the texts are empty for None.
struct CauseText {
  llvm::StringRef id, why, fix;
};
const CauseText &textOf(Cause cause);
/// Returns None for an unknown id.
Cause parseCause(llvm::StringRef id);

/// Returns "what: why".
std::string explain(llvm::StringRef what, Cause cause);

/// Returns why a TorchScript op ("aten::nonzero", "aten::exponential_") cannot be compiled: the
/// cause in its row, or NoRule.
Cause causeOf(llvm::StringRef op);

} // namespace cgc::ir

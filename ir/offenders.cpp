// Offenders: lookups in the table of causes.
#include "ir/offenders.h"

#include "llvm/ADT/STLExtras.h"

#include <utility>

namespace cgc::ir {
namespace {

constexpr CauseText kTexts[] = {
    {"", "", ""},
#define CGC_CAUSE(Enum, id, why, fix) {id, why, fix},
#define CGC_OFFENDER(op, cause)
#include "ir/offenders.def"
};

constexpr std::pair<llvm::StringLiteral, Cause> kOps[] = {
#define CGC_CAUSE(Enum, id, why, fix)
#define CGC_OFFENDER(op, cause) {op, Cause::cause},
#include "ir/offenders.def"
};

} // namespace

const CauseText &textOf(Cause cause) {
  return kTexts[static_cast<size_t>(cause)];
}

std::string explain(llvm::StringRef what, Cause cause) {
  return what.str() + ": " + textOf(cause).why.str();
}

Cause parseCause(llvm::StringRef id) {
  const auto *text = llvm::find_if(kTexts, [&](const CauseText &row) { return row.id == id; });
  return text == std::end(kTexts) ? Cause::None : static_cast<Cause>(text - std::begin(kTexts));
}

Cause causeOf(llvm::StringRef op) {
  if (op.starts_with("quantized::"))
    return Cause::Quantized;
  op.consume_back("_");
  const auto *row = llvm::find_if(kOps, [&](const auto &entry) { return entry.first == op; });
  return row == std::end(kOps) ? Cause::NoRule : row->second;
}

} // namespace cgc::ir

// PatternRewriter: reports candidates that do not match.
#include "passes/pattern.h"

#include "ir/text/text.h"

namespace cgc::passes {

bool PatternRewriter::notifyMatchFailure(const ir::Node &candidate,
                                         const llvm::Twine &reason) const {
  return notifyMatchFailure(candidate, [&] { return reason.str(); });
}

bool PatternRewriter::notifyMatchFailure(const ir::Node &candidate,
                                         llvm::function_ref<std::string()> reason) const {
  if (listener_)
    (*listener_)({.pattern = pattern_.str(),
                  .graph = candidate.graph()->name(),
                  .node = ir::toString(candidate),
                  .loc = candidate.loc(),
                  .reason = reason()});
  return false;
}

} // namespace cgc::passes

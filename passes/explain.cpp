// MatchFailure: its text.
#include "passes/explain.h"

namespace cgc::passes {

std::string toString(const MatchFailure &failure) {
  ir::Loc source = failure.loc;
  source.module.clear();
  std::string text = source.file.empty() ? "" : toString(source) + ": ";
  text += "remark: " + failure.pattern + ": " + failure.reason + "\n  " + failure.node + "\n";
  if (!failure.loc.module.empty())
    text += "  in module '" + failure.loc.module + "'\n";
  return text;
}

} // namespace cgc::passes

// matchesGlob: backtracks over the lengths that each star may take.
#include "passes/path_glob.h"

namespace cgc::passes {

bool matchesGlob(llvm::StringRef glob, llvm::StringRef path) {
  if (glob.empty())
    return path.empty();
  if (glob.front() != '*')
    return !path.empty() && glob.front() == path.front() &&
           matchesGlob(glob.drop_front(), path.drop_front());
  bool across = glob.starts_with("**");
  llvm::StringRef rest = glob.drop_front(across ? 2 : 1);
  for (size_t taken = 0; taken <= path.size(); ++taken) {
    if (matchesGlob(rest, path.drop_front(taken)))
      return true;
    if (taken < path.size() && path[taken] == '.' && !across)
      return false;
  }
  return false;
}

} // namespace cgc::passes

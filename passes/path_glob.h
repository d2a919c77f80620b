// matchesGlob: globs over paths of modules.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace cgc::passes {

/// Matches a path of a module with a glob: `*` within one component, `**` across components.
bool matchesGlob(llvm::StringRef glob, llvm::StringRef path);

} // namespace cgc::passes

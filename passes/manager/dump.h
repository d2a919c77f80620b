// Dumps: numbered files of the IR after each pass.
#pragma once

#include "passes/manager/instrumentation.h"

namespace cgc::passes {

/// Writes `NN-pass.graph.cgir` and `.dot` into `folder` after each pass
/// (InstrumentationOptions::dumpDir).
PassCallbacks dumpTo(const std::string &folder);

/// Whether a dump may be called so.
bool isDumpName(llvm::StringRef fileName);

} // namespace cgc::passes

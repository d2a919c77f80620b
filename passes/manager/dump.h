// Dumps: numbered files of the IR after each pass.
#pragma once

#include "passes/manager/instrumentation.h"

namespace cgc::passes {

/// Returns callbacks that write `NN-pass.graph.cgir` and `.dot` into `folder` after each pass
/// (InstrumentationOptions::dumpDir).
PassCallbacks dumpTo(const std::string &folder);

/// Returns true if `fileName` has the form of a dump's name.
bool isDumpName(llvm::StringRef fileName);

} // namespace cgc::passes

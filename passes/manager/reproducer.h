// Reproducer: the IR in front of a pass that fails, and how to run that pass on it again, in one
// file.
#pragma once

#include "passes/manager/instrumentation.h"
#include <string>

namespace cgc::passes {

/// What the head of a reproducer says.
struct Reproducer {
  std::string pipeline; ///< The pass that failed and those behind it.
  RunOrigin origin;
};

/// Keeps at `path` the IR in front of the pass that is running, so that even a crash of the process
/// leaves it; after a failure that of the pass that failed first, one that refused the model only
/// if none failed otherwise; without a failure no file. An earlier reproducer goes when the first
/// pass begins. Usage if something else is at `path`.
Result<PassCallbacks> writeReproducer(const std::string &path, const RunOrigin &origin);

/// Reads the head of a file that writeReproducer wrote; the rest of it is IR text. InvalidFile,
/// naming `fileName`, if it is no reproducer.
Result<Reproducer> parseReproducer(llvm::StringRef text, const std::string &fileName);

} // namespace cgc::passes

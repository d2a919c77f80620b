// Reproducer: a file with the input IR of a failing pass and the pipeline to run on it.
#pragma once

#include "passes/manager/instrumentation.h"
#include <string>

namespace cgc::passes {

/// The header of a reproducer.
struct Reproducer {
  std::string pipeline; ///< The pass that failed and the passes after it.
  RunOrigin origin;
};

/// Returns callbacks that keep at `path` the input IR of the running pass, so that it survives a
/// crash of the process. After a failure, the file holds the input of the first pass that failed; a
/// pass that refused the model (Unsupported) counts only if none failed otherwise. Without a
/// failure, the file is removed. The first pass overwrites an earlier reproducer. Usage if `path`
/// is anything else.
Result<PassCallbacks> writeReproducer(const std::string &path, const RunOrigin &origin);

/// Parses the header of a file that writeReproducer wrote; the rest of the file is IR text.
/// InvalidFile, naming `fileName`, if it is not a reproducer.
Result<Reproducer> parseReproducer(llvm::StringRef text, const std::string &fileName);

} // namespace cgc::passes

// Options about passes that compile and opt share, and what happens to the diagnostics that passes
// leave.
#pragma once

#include "ir/diagnostics.h"
#include "passes/instrumentation.h"

namespace CLI {
class App;
}

namespace cgc::tool {

/// Adds --print-after-all, --print-after, --dump-dir and --time-passes. `options` must outlive
/// `command`.
void addPassOptions(CLI::App &command, passes::InstrumentationOptions &options);

/// `status`, or if passes collected diagnostics, all of them, each once, with the same code.
Status withDiagnostics(Status status, const ir::Diagnostics &diagnostics);

} // namespace cgc::tool

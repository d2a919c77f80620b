// Options about passes that compile and opt share, and what happens to the diagnostics that passes
// leave.
#pragma once

#include "ir/diagnostics.h"
#include "passes/manager/instrumentation.h"
#include "runtime/base/dtype.h"

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace cgc::tool {

/// Adds --print-after-all, --print-after, --print-changed, --dump-dir, --pass-limit,
/// --crash-reproducer and --time-passes. `options` must outlive `command`.
void addPassOptions(CLI::App &command, passes::InstrumentationOptions &options);

/// What they ask for, on stderr, for a pipeline for `target` with `plugins`; `more` are passes
/// beside those of passes.def.
Result<passes::Instrumentation> instrumentationOf(passes::InstrumentationOptions options,
                                                  DeviceKind target,
                                                  std::vector<passes::UsedPlugin> plugins,
                                                  llvm::ArrayRef<passes::RegisteredPass> more);

/// `status` of running passes; of a failure the log says that it left a reproducer.
Status withReproducer(Status status, const passes::InstrumentationOptions &options);

/// Adds --precision; `name` must outlive `command`.
void addPrecisionOption(CLI::App &command, std::string &name);
/// What a value of --precision stands for: nothing for "keep".
std::optional<DType> precisionOf(const std::string &name);

} // namespace cgc::tool

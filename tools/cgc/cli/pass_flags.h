// Pass flags: options about passes that compile and opt share.
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
/// --crash-reproducer, --explain and --time-passes. `options` must outlive `command`.
void addPassOptions(CLI::App &command, passes::InstrumentationOptions &options);

/// Returns the default passes with their reasons, as lines of a help text.
std::string defaultPassesText();

/// Returns `options` with this program's version and `plugins`, for a reproducer.
passes::InstrumentationOptions withOrigin(passes::InstrumentationOptions options,
                                          std::vector<passes::UsedPlugin> plugins);

/// Returns `status`. If it is a failure and a reproducer was written, logs how to use the
/// reproducer.
Status withReproducer(Status status, const passes::InstrumentationOptions &options);

/// Adds --precision; `name` must outlive `command`.
void addPrecisionOption(CLI::App &command, std::string &name);
/// The dtype that a value of --precision stands for; nothing for "keep".
std::optional<DType> precisionOf(const std::string &name);

} // namespace cgc::tool

// Pass plug-ins: libraries that register passes and substitutions with a pipeline.
#pragma once

#include "passes/pipeline.h"
#include "runtime/base/status.h"

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cgc::tool {

/// Adds --pass-plugin; `paths` must outlive `command`.
void addPassPluginOption(CLI::App &command, std::vector<std::string> &paths);

/// Opens each plug-in, in order, and lets it register with `builder`. They stay loaded until the
/// process ends. InvalidFile if one is missing or no plug-in; Failed, by name, if it has another
/// ABI or throws.
Result<std::vector<passes::UsedPlugin>> loadPassPlugins(const std::vector<std::string> &paths,
                                                        passes::PipelineBuilder &builder);

} // namespace cgc::tool

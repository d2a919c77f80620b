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

/// Opens each plug-in, in order, and lets it register with `builder`. Plug-ins stay loaded until
/// the process ends. InvalidFile if a file is missing or is not a plug-in. Failed, naming the
/// plug-in, if it has another ABI or throws.
Result<std::vector<passes::UsedPlugin>> loadPassPlugins(const std::vector<std::string> &paths,
                                                        passes::PipelineBuilder &builder);

} // namespace cgc::tool

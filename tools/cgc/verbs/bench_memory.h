// bench_memory: `cgc bench --memory`, the memory of a plan at each stage of a process.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <vector>

namespace cgc::tool {

/// Measures the memory of the plan file `path` and prints it beside the prediction. `executor` is a
/// value of --executor, `hostModules` of --host-modules.
Status benchMemory(const std::string &path, const std::string &executor,
                   const std::vector<std::string> &opLibraries, const std::string &hostModules,
                   bool json);

} // namespace cgc::tool

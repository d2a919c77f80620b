// Host modules: submodules of a TorchScript file that LibTorch runs beside a plan.
#pragma once

#include "passes/host_types.h"
#include "runtime/exec/host_function.h"
#include "runtime/plan/plan.h"

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cgc::tool {

/// Adds --host-modules; `model` must outlive `command`.
void addHostModulesOption(CLI::App &command, std::string &model);

/// Whether a record of the plan calls a function of the host.
bool hasHostCalls(const PlanData &plan);

/// The functions that `plan` calls, which run the submodules of the file `model` by LibTorch on
/// `device`. None, without loading `model`, if the plan calls none, which is noted in the log, or
/// if `model` is empty.
Result<std::vector<NamedHostFunction>> hostFunctionsOf(const PlanData &plan,
                                                       const std::string &model, DeviceKind device);

/// Runs the submodules of the file `model` by LibTorch on the CPU to learn the types of their
/// results.
Result<passes::HostTypes> hostTypesOf(const std::string &model);

} // namespace cgc::tool

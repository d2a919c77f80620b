// Host modules: binds the frontend's HostModules to names.
#include "tools/cgc/cli/host_modules.h"

#include "runtime/exec/requirements.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/libraries.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace cgc::tool {

namespace {

Result<std::shared_ptr<frontend::HostModules>> load(const std::string &model, DeviceKind device) {
  CGC_ASSIGN_OR_RETURN(const frontend::Api *frontend, openFrontend());
  CGC_ASSIGN_OR_RETURN(auto modules, frontend->loadHostModules(model, device));
  return std::shared_ptr<frontend::HostModules>(std::move(modules));
}

} // namespace

void addHostModulesOption(CLI::App &command, std::string &model) {
  command
      .add_option("--host-modules", model,
                  "The TorchScript file that the plan was compiled from, whose modules LibTorch "
                  "runs for a plan that was compiled with --host-module")
      ->type_name("MODEL.pt");
}

bool hasHostCalls(const PlanData &plan) {
  return !requirementsOf(plan).hostFunctions.empty();
}

Result<std::vector<NamedHostFunction>>
hostFunctionsOf(const PlanData &plan, const std::string &model, DeviceKind device) {
  std::vector<NamedHostFunction> functions;
  if (model.empty())
    return functions;
  if (!hasHostCalls(plan)) {
    logInfo(fmt::format("--host-modules {} is not used: the plan calls no function of the host",
                        model));
    return functions;
  }
  CGC_ASSIGN_OR_RETURN(const auto modules, load(model, device));
  for (const auto &[name, location] : requirementsOf(plan).hostFunctions)
    functions.push_back({name, [modules, name](std::span<const TensorView> inputs,
                                               std::span<const TensorView> outputs, void *stream) {
                           return modules->run(name, inputs, outputs, stream);
                         }});
  return functions;
}

Result<passes::HostTypes> hostTypesOf(const std::string &model) {
  CGC_ASSIGN_OR_RETURN(const auto modules, load(model, DeviceKind::Cpu));
  return passes::HostTypes(
      [modules](const std::string &function,
                llvm::ArrayRef<ir::TensorType> inputs) -> Result<passes::HostResults> {
        std::vector<TensorView> views;
        for (const ir::TensorType &input : inputs)
          views.push_back({nullptr,
                           input.dtype,
                           DeviceKind::Cpu,
                           std::span(input.sizes.data(), input.sizes.size()),
                           {}});
        CGC_ASSIGN_OR_RETURN(const auto results, modules->resultTypes(function, views));
        passes::HostResults typed{{}, results.isTuple};
        for (const auto &[dtype, sizes] : results.types)
          typed.types.push_back(ir::TensorType::dense(dtype, sizes));
        return typed;
      });
}

} // namespace cgc::tool

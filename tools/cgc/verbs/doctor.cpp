// cgc doctor: what this machine has, and whether a plan can run on it.
#include "runtime/plan/plan_file.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/libraries.h"
#include "tools/cgc/report/machine.h"
#include "tools/cgc/verbs/verbs.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include <cuda_runtime_api.h>

namespace cgc::tool {

namespace {

using Json = nlohmann::ordered_json;

struct DoctorFlags {
  std::optional<std::string> plan;
  std::vector<std::string> opLibraries;
  bool json = false;
  bool isPrinted = false; ///< The result went to stdout, so that no error object follows it.
};

/// The plan that the user names, and what it needs.
struct PlanNeeds {
  DeviceKind target = DeviceKind::Cpu;
  std::vector<Need> needs;

  size_t problems() const {
    return std::ranges::count_if(needs, [](const Need &need) { return !need.problem.empty(); });
  }
};

std::string machineText(const Machine &machine) {
  std::string text =
      machine.driver == 0
          ? "driver  none; plans for cuda need one: install an NVIDIA driver for CUDA " +
                cudaVersionText(CUDART_VERSION) + "\n"
          : fmt::format("driver  for CUDA {}; cgc needs {}\n", cudaVersionText(machine.driver),
                        cudaVersionText(CUDART_VERSION));
  for (const GpuFacts &gpu : machine.gpus)
    text += fmt::format("GPU {}   {}, sm_{}{}, {} SMs, {}\n", gpu.index, gpu.name, gpu.major,
                        gpu.minor, gpu.multiprocessors,
                        gpu.freeBytes ? fmt::format("{} of {} free", formatBytes(*gpu.freeBytes),
                                                    formatBytes(gpu.totalBytes))
                                      : "cannot be used");
  if (machine.gpus.empty())
    text += "GPU     none; cgc run --executor reference runs plans for cuda without one, slowly\n";
  text += "\n";
  std::vector<std::vector<std::string>> rows = {{"library", "where"}};
  for (const LibraryFacts &library : machine.libraries)
    rows.push_back({library.name, library.problem.empty() ? library.path : "-"});
  text += formatTable(rows);
  for (const LibraryFacts &library : machine.libraries)
    if (!library.problem.empty())
      text += fmt::format("\n{}: {}\n", library.name, library.problem);
  return text;
}

std::string needsText(const std::string &plan, const PlanNeeds &needs) {
  std::string text = fmt::format("\n{}, for {}, needs\n", plan, deviceName(needs.target));
  for (const Need &need : needs.needs)
    text += need.problem.empty()
                ? fmt::format("  ok       {}\n", need.what)
                : fmt::format("  MISSING  {}\n           {}\n", need.what, need.problem);
  return text + (needs.problems() == 0 ? "It can run here.\n" : "It cannot run here.\n");
}

Json toJson(const Machine &machine) {
  Json gpus = Json::array(), libraries = Json::array();
  for (const GpuFacts &gpu : machine.gpus)
    gpus.push_back({{"index", gpu.index},
                    {"name", gpu.name},
                    {"arch", fmt::format("sm_{}{}", gpu.major, gpu.minor)},
                    {"multiprocessors", gpu.multiprocessors},
                    {"total_bytes", gpu.totalBytes},
                    {"free_bytes", gpu.freeBytes ? Json(*gpu.freeBytes) : Json(nullptr)}});
  for (const LibraryFacts &library : machine.libraries)
    libraries.push_back(
        {{"name", library.name},
         {"path", library.problem.empty() ? Json(library.path) : Json(nullptr)},
         {"problem", library.problem.empty() ? Json(nullptr) : Json(library.problem)}});
  return {
      {"driver_cuda", machine.driver == 0 ? Json(nullptr) : Json(cudaVersionText(machine.driver))},
      {"needed_cuda", cudaVersionText(CUDART_VERSION)},
      {"gpus", std::move(gpus)},
      {"libraries", std::move(libraries)}};
}

Json toJson(const std::string &path, const PlanNeeds &plan) {
  Json needs = Json::array();
  for (const Need &need : plan.needs)
    needs.push_back({{"what", need.what},
                     {"ok", need.problem.empty()},
                     {"problem", need.problem.empty() ? Json(nullptr) : Json(need.problem)}});
  return {{"plan", path},
          {"target", deviceName(plan.target)},
          {"can_run", plan.problems() == 0},
          {"needs", std::move(needs)}};
}

Status doctor(DoctorFlags &options) {
  std::optional<PlanNeeds> plan;
  if (options.plan) {
    CGC_ASSIGN_OR_RETURN(const Plan loaded, Plan::load(*options.plan));
    plan = PlanNeeds{loaded.data().target, needsOf(loaded.data(), options.opLibraries)};
  }
  const Machine machine = lookAtMachine();
  if (options.json) {
    Json fields = toJson(machine);
    if (plan)
      fields["plan"] = toJson(*options.plan, *plan);
    CGC_TRY(printJson("doctor", fields));
  } else {
    CGC_TRY(printOut(machineText(machine) + (plan ? needsText(*options.plan, *plan) : "")));
  }
  options.isPrinted = true;
  if (plan && plan->problems() > 0)
    return {Code::Device, fmt::format("'{}' cannot run here: {} of the {} things that it needs {}",
                                      *options.plan, plan->problems(), plan->needs.size(),
                                      plan->problems() == 1 ? "is missing" : "are missing")};
  return Status::ok();
}

} // namespace

Verb addDoctor(CLI::App &app) {
  auto options = std::make_shared<DoctorFlags>();
  CLI::App *command =
      app.add_subcommand("doctor", "Show driver, GPUs and libraries, and what a plan misses");
  command->add_option("plan", options->plan, "A plan that is to run here")->type_name("PLAN");
  addOpLibraryOption(*command, options->opLibraries);
  command->add_flag("--json", options->json, "Print the result as JSON");
  command->footer("The exit status is 6 if the plan cannot run here.\n\n"
                  "Examples:\n"
                  "  cgc doctor\n"
                  "  cgc doctor model.cgplan --json");
  return {command, [options] { return doctor(*options); },
          [options] { return options->json && !options->isPrinted; }};
}

} // namespace cgc::tool

// bench_memory: runs the plan once in this process and prints the stages.
#include "tools/cgc/verbs/bench_memory.h"

#include "tools/cgc/cli/host_modules.h"

#include "runtime/plan/plan_file.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/libraries.h"
#include "tools/cgc/cli/progress.h"
#include "tools/cgc/load/memory_stages.h"
#include "tools/cgc/verbs/runner.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cgc::tool {
namespace {

using Json = nlohmann::ordered_json;

/// Runs of each bucket, after which the memory in use is that of the steady state.
constexpr int kMemoryRuns = 20;

constexpr const char *kMemoryDefinitions =
    "predicted      from the plan: weights, then also the arena, the states, and the static "
    "inputs\n"
    "               and outputs of all buckets. CUDA graphs, loaded kernels and libraries are not\n"
    "               predicted\n"
    "rounded        the same in blocks of 2 MiB, in which CUDA gives out a GPU's memory\n"
    "difference     measured less rounded\n"
    "model ready    weights in place, libraries opened\n"
    "static inputs  as after capture, without the memory that the captures took\n"
    "after capture  every bucket bound, warmed up and captured\n"
    "steady         after 20 runs of every bucket\n"
    "peak           the most after any of these steps";

int64_t difference(const MemoryStage &stage) {
  return int64_t(stage.measured) - int64_t(stage.rounded);
}

std::string stagesText(const MemoryStages &memory, bool onGpu) {
  std::vector<std::vector<std::string>> rows = {
      {"stage", "predicted", "rounded", "measured", "difference"}};
  for (const MemoryStage &stage : memory.stages) {
    const int64_t more = difference(stage);
    rows.push_back({stage.name, formatBytes(stage.predicted), formatBytes(stage.rounded),
                    formatBytes(stage.measured),
                    (more < 0 ? "-" : "") + formatBytes(uint64_t(more < 0 ? -more : more))});
  }
  return formatTable(rows) +
         fmt::format("\nThe captures took {}. The workspace of library GEMMs, part of the arena, "
                     "is {}. At most {} were counted.\n{}\n{}\n",
                     formatBytes(memory.counted.graphs), formatBytes(memory.counted.workspace),
                     formatBytes(memory.counted.peak),
                     onGpu ? "Memory in use on the GPU, without CUDA's own context. Other programs "
                             "on the GPU disturb it."
                           : "Resident memory of this process, LibTorch included. The weights are "
                             "mapped from the file and not predicted.",
                     kMemoryDefinitions);
}

Json stagesJson(const std::string &path, const MemoryStages &memory, const PlanData &plan) {
  Json stages = Json::array();
  for (const MemoryStage &stage : memory.stages)
    stages.push_back({{"stage", stage.name},
                      {"predicted_bytes", stage.predicted},
                      {"rounded_bytes", stage.rounded},
                      {"measured_bytes", stage.measured},
                      {"difference_bytes", difference(stage)}});
  return {{"plan", path},
          {"target", deviceName(plan.target)},
          {"measured", plan.target == DeviceKind::Cuda ? "gpu" : "resident"},
          {"graph_bytes", memory.counted.graphs},
          {"workspace_bytes", memory.counted.workspace},
          {"peak_bytes", memory.counted.peak},
          {"stages", std::move(stages)}};
}

} // namespace

Status benchMemory(const std::string &path, const std::string &executor,
                   const std::vector<std::string> &opLibraries, const std::string &hostModules,
                   bool json) {
  CGC_ASSIGN_OR_RETURN(const Plan plan, Plan::load(path));
  noteUnusedOpLibraries(plan.data(), opLibraries);
  CGC_ASSIGN_OR_RETURN(auto hostFunctions,
                       hostFunctionsOf(plan.data(), hostModules, plan.data().target));
  Progress progress(1);
  progress.begin("bench the memory of " + path);
  CGC_ASSIGN_OR_RETURN(const MemoryStages memory,
                       measureMemory(plan,
                                     {.executor = executorOf(executor),
                                      .providerPath = providerPath(),
                                      .opLibraries = opLibraries,
                                      .hostFunctions = std::move(hostFunctions)},
                                     kMemoryRuns));
  return json ? printJson("memory_stages", stagesJson(path, memory, plan.data()))
              : printOut(stagesText(memory, plan.data().target == DeviceKind::Cuda));
}

} // namespace cgc::tool

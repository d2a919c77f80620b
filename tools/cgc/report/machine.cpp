// Machine: asks the CUDA runtime, opens the libraries as the runtime does, and compares memory.
#include "tools/cgc/report/machine.h"

#include "runtime/base/libtorch.h"
#include "runtime/exec/cublaslt.h"
#include "runtime/exec/cuda_support.h"
#include "runtime/exec/gpu.h"
#include "runtime/exec/memory_limit.h"
#include "runtime/exec/provider.h"
#include "runtime/exec/reference_library.h"
#include "runtime/exec/requirements.h"
#include "runtime/plan/op_library.h"
#include "runtime/plan/plan_memory.h"
#include "tools/cgc/cli/console.h"
#include "tools/cgc/cli/libraries.h"

#include <fmt/format.h>

#include <algorithm>

namespace cgc::tool {
namespace {

LibraryFacts factsOf(std::string name, const Status &opened, const std::string &path) {
  if (opened.isOk())
    return {std::move(name), path, ""};
  return {std::move(name), "", opened.message()};
}

std::vector<GpuFacts> findGpus() {
  int count = 0;
  std::vector<GpuFacts> gpus;
  if (!CGC_CUDA(cudaGetDeviceCount(&count), "no GPU").isOk())
    return gpus;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties;
    if (!CGC_CUDA(cudaGetDeviceProperties(&properties, index), "no GPU").isOk())
      continue;
    GpuFacts gpu{index,
                 properties.name,
                 properties.major,
                 properties.minor,
                 properties.multiProcessorCount,
                 properties.totalGlobalMem,
                 std::nullopt};
    const DeviceGuard guard(index);
    if (const Result<uint64_t> free = freeGpuMemory(); free.isOk())
      gpu.freeBytes = *free;
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

/// The first kernel that the plan launches and this cgc lacks or has with other arguments; empty if
/// it has all.
std::string unknownKernel(const PlanData &plan) {
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets)
      for (const LaunchRecord &record : bucket.records)
        if (const auto *launch = std::get_if<KernelLaunch>(&record.op))
          if (const Kernel *const kernel = findKernel(launch->kernel);
              !kernel || kernel->abiHash != launch->abiHash)
            return recordName(record);
  return "";
}

Need memoryNeed(const PlanData &plan) {
  const PlanMemory memory = planMemory(plan);
  const bool cuda = plan.target == DeviceKind::Cuda;
  // The weights of a cpu plan stay in the mapped file.
  const uint64_t bytes = memory.arena + memory.io + memory.states + (cuda ? memory.weights : 0);
  Need need{
      fmt::format("{} of {} memory: {}arena {}, inputs and outputs {}{}", formatBytes(bytes),
                  cuda ? "GPU" : "host",
                  cuda ? fmt::format("weights {}, ", formatBytes(memory.weights)) : "",
                  formatBytes(memory.arena), formatBytes(memory.io),
                  memory.states ? fmt::format(", states {}", formatBytes(memory.states)) : ""),
      ""};
  const Result<uint64_t> free = cuda ? freeGpuMemory() : Result<uint64_t>(availableHostMemory());
  if (free.isOk() && *free < bytes)
    need.problem = fmt::format("{} are free; end other programs, or compile fewer or smaller "
                               "buckets",
                               formatBytes(*free));
  return need;
}

} // namespace

std::string cudaVersionText(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Machine lookAtMachine() {
  Machine machine;
  (void)CGC_CUDA(cudaDriverGetVersion(&machine.driver), "no driver");
  machine.gpus = findGpus();
  const auto cublasLt = CublasLt::open(""); // The path is known while it is open.
  machine.libraries.push_back(
      factsOf("cuBLASLt", cublasLt.status(), loadedPath(CublasLt::kLibrary)));
  const std::string reference = libraryPath(kReferenceLibrary);
  machine.libraries.push_back(
      factsOf(kReferenceLibrary, ReferenceLibrary::open(reference).status(), reference));
  machine.libraries.push_back(
      factsOf("libcgc_aten.so", loadProvider(providerPath()).status(), providerPath()));
  machine.libraries.push_back(
      factsOf("libcgc_frontend.so", openFrontend().status(), libraryPath("libcgc_frontend.so")));
  const std::string torch = loadedPath("libtorch_cpu.so");
  machine.libraries.push_back(
      {fmt::format("LibTorch {}", kLibTorchVersion), torch,
       torch.empty() ? fmt::format("it was not found; set {} to its folder", kLibTorchVariable)
                     : ""});
  return machine;
}

std::vector<Need> needsOf(const PlanData &plan, const std::vector<std::string> &opLibraries) {
  const Requirements needs = requirementsOf(plan);
  std::vector<Need> list;
  const auto add = [&](const std::string &what, const Status &status) {
    list.push_back({what, status.message()});
  };
  bool usable = true; // The device that the plan runs on.
  if (needs.gpu) {
    const Result<Gpu> gpu = findGpu(0);
    const Status status = gpu.isOk() ? checkGpu(*gpu, needs.kernelTraits) : gpu.status();
    usable = status.isOk();
    add(needs.needsSm90a() ? "a GPU with sm_90a (H100, H200)" : "a GPU from sm_80 on", status);
  }
  if (const std::string kernel = unknownKernel(plan); !kernel.empty())
    list.push_back({kernel, "this cgc has no such kernel; compile the model with this cgc, or run "
                            "the plan with the one that compiled it"});
  if (needs.cublasLt)
    add(fmt::format("cuBLASLt ({})", CublasLt::kLibrary), CublasLt::open("").status());
  if (!needs.libTorch.empty()) {
    const auto provider = loadProvider(providerPath());
    Status status = provider.status();
    if (provider.isOk() && usable)
      status = (*provider)->initialize(plan.target, 0);
    add(fmt::format("libcgc_aten.so and LibTorch {}", kLibTorchVersion), status);
  }
  if (!plan.opLibraries.empty()) {
    std::vector<std::string> names;
    for (const OpLibraryId &library : plan.opLibraries)
      names.push_back(library.name);
    add("op libraries: " + joinNames(names), cgc::openOpLibraries(plan, opLibraries).status());
  }
  // A program gives them, so that they are always there for some.
  for (const auto &[name, location] : needs.hostFunctions)
    list.push_back({"the host function '" + name + "' (cgc run: --host-modules MODEL.pt)", ""});
  if (usable)
    list.push_back(memoryNeed(plan));
  return list;
}

} // namespace cgc::tool

// measureMemory: takes the difference of the memory in use after each step.
#include "tools/cgc/load/memory_stages.h"

#include "runtime/exec/cuda_support.h"
#include "runtime/exec/gpu.h"
#include "runtime/plan/plan_memory.h"

#include <algorithm>
#include <fstream>

#include <unistd.h>

namespace cgc::tool {
namespace {

/// The memory in use of the current GPU, or the resident memory of this process.
Result<uint64_t> usedBytes(bool onGpu) {
  if (onGpu) {
    size_t free = 0, total = 0;
    CGC_TRY(CGC_CUDA(cudaMemGetInfo(&free, &total), "cannot ask for the GPU's memory"));
    return uint64_t(total - free);
  }
  uint64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident; // In pages.
  return resident * uint64_t(sysconf(_SC_PAGESIZE));
}

/// Tensors of zeros in host memory.
class Zeros final {
public:
  explicit Zeros(const std::vector<IoTensor> &tensors) {
    for (const IoTensor &tensor : tensors) {
      bytes_.emplace_back(*tensorBytes(tensor.dtype, tensor.sizes));
      views_.push_back({bytes_.back().data(), tensor.dtype, DeviceKind::Cpu, tensor.sizes, {}});
    }
  }
  const std::vector<TensorView> &views() const { return views_; }

private:
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<TensorView> views_;
};

/// The sizes of the weights of a plan; with `all`, also of arena, inputs and outputs.
std::vector<uint64_t> bufferSizes(const PlanData &plan, bool all) {
  const PlanMemory bytes = planMemory(plan);
  std::vector<uint64_t> sizes = {bytes.weights};
  if (!all)
    return sizes;
  sizes.push_back(bytes.arena);
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets)
      for (const auto *tensors : {&bucket.inputs, &bucket.outputs})
        for (const IoTensor &tensor : *tensors)
          sizes.push_back(*tensorBytes(tensor.dtype, tensor.sizes));
  return sizes;
}

} // namespace

Result<MemoryMeter> MemoryMeter::create(bool onGpu) {
  CGC_ASSIGN_OR_RETURN(const uint64_t base, usedBytes(onGpu));
  return MemoryMeter(onGpu, base);
}

Result<uint64_t> MemoryMeter::read() {
  CGC_ASSIGN_OR_RETURN(const uint64_t used, usedBytes(onGpu_));
  const uint64_t grown = used - std::min(used, base_);
  peak_ = std::max(peak_, grown);
  return grown;
}

uint64_t cudaMallocBytes(const std::vector<uint64_t> &sizes) {
  constexpr uint64_t kBlock = 2 << 20;
  const auto roundUp = [](uint64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; };
  uint64_t sum = 0, small = 0;
  for (const uint64_t size : sizes)
    if (size >= kBlock / 2)
      sum += roundUp(size);
    else
      small += size;
  return sum + roundUp(small);
}

Result<MemoryStages> measureMemory(const Plan &plan, const EngineOptions &engineOptions, int runs) {
  const bool onGpu =
      plan.data().target == DeviceKind::Cuda && engineOptions.executor != ExecutorKind::Reference;
  if (onGpu)
    CGC_TRY(findGpu(engineOptions.device).status());
  const DeviceGuard guard(onGpu ? engineOptions.device : -1);
  // The memory of the CUDA context, which this creates, is not the plan's.
  CGC_ASSIGN_OR_RETURN(MemoryMeter meter, MemoryMeter::create(onGpu));
  CGC_ASSIGN_OR_RETURN(const Engine engine, Engine::create(plan, engineOptions));
  CGC_ASSIGN_OR_RETURN(const uint64_t ready, meter.read());
  CGC_ASSIGN_OR_RETURN(Context context,
                       Context::create(engine, {.capture = CaptureTime::OnFirstUse}));
  uint64_t captured = 0, steady = 0;
  for (const Entry &entry : plan.data().entries)
    for (size_t bucket = 0; bucket < entry.buckets.size(); ++bucket) {
      CGC_TRY(context.prepare(entry.name, bucket));
      CGC_ASSIGN_OR_RETURN(captured, meter.read());
    }
  for (const Entry &entry : plan.data().entries)
    for (const Bucket &bucket : entry.buckets) {
      const Zeros inputs(bucket.inputs), outputs(bucket.outputs);
      for (int run = 0; run < runs; ++run) {
        CGC_TRY(context.run(entry.name, inputs.views(), outputs.views()));
        CGC_ASSIGN_OR_RETURN(steady, meter.read());
      }
    }
  const PlanMemory bytes = planMemory(plan.data());
  const uint64_t weights = onGpu ? bytes.weights : 0,
                 all = weights + bytes.arena + bytes.io + bytes.states;
  const MemoryReport counted = engine.memory();
  const uint64_t weightsRounded =
      onGpu ? cudaMallocBytes(bufferSizes(plan.data(), /*all=*/false)) : weights;
  const uint64_t allRounded = onGpu ? cudaMallocBytes(bufferSizes(plan.data(), /*all=*/true)) : all;
  return MemoryStages{
      {{"model ready", weights, weightsRounded, ready},
       {"static inputs", all, allRounded, captured - std::min(captured, counted.graphs)},
       {"after capture", all, allRounded, captured},
       {"steady", all, allRounded, steady},
       {"peak", all, allRounded, meter.peak()}},
      counted};
}

} // namespace cgc::tool

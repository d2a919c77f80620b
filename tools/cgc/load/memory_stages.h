// measureMemory: the memory of a device while a plan is made ready and runs, beside the prediction.
#pragma once

#include "runtime/exec/engine.h"

#include <cstdint>
#include <string>
#include <vector>

namespace cgc::tool {

/// The memory in use at a stage, without what was in use before the plan.
struct MemoryStage {
  const char *name;
  uint64_t predicted = 0; ///< From the plan alone (planMemory), without graphs and libraries.
  uint64_t rounded = 0;   ///< On a GPU, the same in the units in which CUDA takes memory.
  uint64_t measured = 0;
};

struct MemoryStages {
  /// In order: "model ready", "static inputs", "after capture", "steady", "peak".
  std::vector<MemoryStage> stages;
  MemoryReport counted; ///< What the runtime counted, at the end.
};

/// Measures the growth of the memory in use, and its largest value: of the current GPU, as the
/// driver tells it, or of the resident memory of this process.
class MemoryMeter final {
public:
  /// Takes the memory in use now as the zero. On a GPU, also creates its CUDA context.
  static Result<MemoryMeter> create(bool onGpu);
  Result<uint64_t> read();
  uint64_t peak() const { return peak_; } ///< The most that read() returned.

private:
  MemoryMeter(bool onGpu, uint64_t base) : onGpu_(onGpu), base_(base) {}
  bool onGpu_;
  uint64_t base_, peak_ = 0;
};

/// The device memory that cudaMalloc takes for buffers of `sizes` bytes each. Those of a megabyte
/// and more are rounded up to 2 MiB each, smaller ones share blocks of 2 MiB. Observed with CUDA
/// 13.0 on H100 and H200; the documentation does not say.
uint64_t cudaMallocBytes(const std::vector<uint64_t> &sizes);

/// Creates an engine and one context for `plan`, prepares every bucket, runs each `runs` times on
/// zeros, and measures the device's memory in use after each step: that of the GPU, as the driver
/// tells it, for which other programs must be quiet; on the host, the resident memory of this
/// process, in which the weights are mapped and not predicted. Fails as Engine::create,
/// Context::create and Context::run do.
Result<MemoryStages> measureMemory(const Plan &plan, const EngineOptions &engineOptions, int runs);

} // namespace cgc::tool

// Gpu: the GPU that an engine runs on, and checks of its capabilities.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace cgc {

/// A GPU: CUDA's device index, name, compute capability major.minor, and number of SMs.
struct Gpu {
  int index = -1;
  std::string name; ///< "NVIDIA H200"
  int major = 0, minor = 0, multiprocessors = 0;
};

/// Parts of the message for a missing GPU: who needs it, and what to do without one.
struct GpuNeed {
  const char *who = "the plan has target cuda";
  const char *otherwise =
      "run it where there is one, or with the reference executor, which is slow "
      "(cgc run --executor reference), or compile it with --target cpu";
};
/// Finds GPU `index`. Device if there is no driver or no GPU, or if the driver is too old; the
/// message says which. Usage if there is no GPU of this index.
Result<Gpu> findGpu(int index, GpuNeed need = {});

/// Device unless `gpu` can run kernels with these traits (KernelTrait). The message names the GPU
/// and the next step.
Status checkGpu(const Gpu &gpu, unsigned traits);

} // namespace cgc

// The GPU that an engine runs on, and what it has to be able to do.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace cgc {

struct Gpu {
  int index = -1;
  std::string name; ///< "NVIDIA H200"
  int major = 0, minor = 0, multiprocessors = 0;
};

/// Who needs a GPU, and what to do without one: the ends of a message.
struct GpuNeed {
  const char *who = "the plan has target cuda";
  const char *otherwise = "run it where there is one, or compile with --target cpu";
};
/// GPU `index`. Device, with what is missing, if there is no driver, no GPU, or the driver is too
/// old; Usage if there is no GPU of this number.
Result<Gpu> findGpu(int index, GpuNeed need = {});

/// Device, with the card's name and the next step, unless `gpu` runs kernels of these traits
/// (KernelTrait).
Status checkGpu(const Gpu &gpu, unsigned traits);

} // namespace cgc

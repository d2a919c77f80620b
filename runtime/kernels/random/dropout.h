// dropout_*: launch shape and check.
#pragma once

#include "runtime/kernels/random/uniform.h"

namespace cgc {

/// A checked launch. Its grid is that of uniform_f32.
struct DropoutLaunch {
  UniformLaunch numbers; ///< vectors: whether x and y begin at multiples of four elements.
  float p, scale;        ///< The elements that stay are multiplied by scale.
};

Result<DropoutLaunch> checkDropout(const LaunchView &launch, DType dtype);

} // namespace cgc

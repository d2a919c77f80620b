// Activations by themselves: cgc.quick_gelu, and what a product did not fuse.
#pragma once

#include "backend/lowering.h"
#include "runtime/kernels/pointwise/activation.h"

namespace cgc::backend {

/// The activation that cgc.linear calls `name`, which its rule has checked.
Activation activationNamed(llvm::StringRef name);

/// Adds the records of `activation`, not None, from `input` into `result`, which may be the same.
void activate(Activation activation, const Place &input, const Place &result,
              BucketBuilder &builder);

} // namespace cgc::backend

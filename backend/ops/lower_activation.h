// Activations as records of their own: cgc.quick_gelu, and those that a GEMM did not fuse.
#pragma once

#include "backend/lowering.h"
#include "runtime/kernels/pointwise/activation.h"

namespace cgc::backend {

/// The activation with the name that cgc.linear uses. The inference rule of cgc.linear has checked
/// `name`.
Activation activationNamed(llvm::StringRef name);

/// Adds the records that apply `activation`, which is not None, to `input` and write `result`. Both
/// may be the same place.
void activate(Activation activation, const Place &input, const Place &result,
              BucketBuilder &builder);

} // namespace cgc::backend

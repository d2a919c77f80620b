// Products: where it is decided what runs a matrix product and what of its surroundings is fused.
#pragma once

#include "backend/bucket_builder.h"
#include "runtime/base/status.h"
#include "runtime/kernels/pointwise/activation.h"

namespace cgc::backend {

/// result = activation(x [..., K] weight [N, K]^T + bias [N]) + residual [..., N]. All of one
/// floating dtype.
struct Product {
  Place x, weight;
  std::optional<Place> bias, residual;
  Activation activation = Activation::None;
  Place result; ///< Dense.
};

/// What was not fused. The caller applies it to `result`, in place: first the activation.
struct Remainder {
  bool activation = false, residual = false;
};

/// Adds the records of as much of the product as one call computes. Unsupported if nothing can
/// compute it.
Result<Remainder> lowerProduct(const Product &product, BucketBuilder &builder);

/// The same with the rows of x normalised first: to zero mean and unit variance, `eps` added to the
/// variance. Rows of weight sum to 0; there is no residual. Adds the record of a kernel that
/// computes all of it; false, without one, where there is none or the layer_norm and the product by
/// themselves are faster.
bool lowerNormProduct(const Product &product, double eps, BucketBuilder &builder);

/// What cuBLASLt may use besides its operands: what NVIDIA recommends for these GPUs.
int64_t libraryWorkspaceBytes(Arch arch);

} // namespace cgc::backend

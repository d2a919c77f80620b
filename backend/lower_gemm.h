// Lowers GEMMs: chooses what computes a GEMM, and what of its bias, activation and residual is
// fused.
#pragma once

#include "backend/bucket_builder.h"
#include "runtime/base/status.h"
#include "runtime/kernels/pointwise/activation.h"

namespace cgc::backend {

/// result = activation(x [..., K] weight [N, K]^T + bias [N]) + residual [..., N]. All tensors have
/// one floating dtype.
struct Gemm {
  Place x, weight;
  std::optional<Place> bias, residual;
  Activation activation = Activation::None;
  Place result; ///< Dense.
};

/// What was not fused. The caller applies it to `result` in place: the activation, then the
/// residual.
struct Remainder {
  bool activation = false, residual = false;
};

/// Adds the record that computes the GEMM with as much as it fuses, and returns the rest.
/// Unsupported if nothing can compute the GEMM.
Result<Remainder> lowerGemm(const Gemm &gemm, BucketBuilder &builder);

/// Lowers the GEMM with the rows of x normalized first: to zero mean and unit variance, with `eps`
/// added to the variance. Rows of weight sum to 0; there is no residual. Adds the record of one
/// kernel that computes all of it. Returns false, without a record, if no kernel can or if a
/// separate layer_norm and a GEMM are faster.
bool lowerNormGemm(const Gemm &gemm, double eps, BucketBuilder &builder);

/// Bytes of the workspace of a cuBLASLt call, as NVIDIA recommends for these GPUs.
int64_t libraryWorkspaceBytes(Arch arch);

} // namespace cgc::backend

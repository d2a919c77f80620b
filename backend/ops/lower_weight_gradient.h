// The GEMM that computes the gradients of the weight and the bias of a linear layer.
#pragma once

#include "backend/lower_gemm.h"

namespace cgc::backend {

/// The operands of cgc.weight_gradient as matrices: grad [rows, N] and input [rows, K].
struct WeightGradientOperands {
  Place grad, input;

  /// The product that is the gradient of the weight, and of the bias if there is one.
  SmallGemm gemm(const Place &weight, const std::optional<Place> &bias) const {
    return {.a = transposed(grad), .b = transposed(input), .y = weight, .sums = bias};
  }
};
/// Those of a node with the operands grad_out and input.
WeightGradientOperands weightGradientOperands(const ir::Node &node, BucketBuilder &builder);

} // namespace cgc::backend

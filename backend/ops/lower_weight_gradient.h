// The GEMM that computes the gradients of the weight and the bias of a linear layer.
#pragma once

#include "backend/lower_gemm.h"

namespace cgc::backend {

/// The operands x and w of the GEMM whose y is the gradient of the weight, of a node with the
/// operands grad_out and input: their transposes, of which one is [N, rows], the other [K, rows].
GemmPlaces weightGradientOperands(const ir::Node &node, BucketBuilder &builder);

} // namespace cgc::backend

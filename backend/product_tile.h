// The tiles that a product may have, in the order of a model of the H200, and their launches.
#pragma once

#include "runtime/kernels/activation.h"
#include "runtime/kernels/product.h"
#include "runtime/plan/plan.h"

#include <vector>

namespace cgc::backend {

/// A tile and how much of the depth is on its way at a time.
struct TileChoice {
  const ProductTile *tile;
  uint32_t stages;
};

/// All choices for x [tokens, depth] times w [features, depth] on a GPU with so many SMs, the one
/// that the model holds to be fastest first.
std::vector<TileChoice> tileChoices(int64_t tokens, int64_t features, int64_t depth,
                                    int64_t multiprocessors);

/// The launch of the kernel `product` with this tile, without its operands: reads x, w, bias or
/// none, residual or none; writes y.
KernelLaunch productLaunch(const TileChoice &choice, DType dtype, int64_t tokens, int64_t features,
                           int64_t depth, Activation activation);

} // namespace cgc::backend

// What layer_norm and cgc.add_layer_norm share.
#pragma once

#include "backend/lowering.h"

namespace cgc::backend {

/// result = layer_norm(input) over rows of `columns`; with an addend, whose sizes are the last ones
/// of input's, of sum = input + addend.
struct LayerNorm {
  Place input;
  std::optional<Place> addend = {}, weight = {}, bias = {};
  std::optional<Place> sum = {}; ///< There if the addend is.
  Place result;
  int64_t columns;
  double eps;
};

/// Adds the record; false, without one, where no kernel takes the tensors.
bool launchLayerNorm(const LayerNorm &norm, BucketBuilder &builder);

/// Normalizes the sum, or the input, over its last dimensions, which are `shape`, with LibTorch.
void callLayerNorm(const LayerNorm &norm, std::vector<int64_t> shape, BucketBuilder &builder);

} // namespace cgc::backend

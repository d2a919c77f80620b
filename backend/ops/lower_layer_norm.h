// LayerNorm: lowers a layer norm, for layer_norm and cgc.add_layer_norm; the names of the kernels.
#pragma once

#include "backend/lowering.h"

namespace cgc::backend {

/// The kernel of `family` for rows of `dtype`: `_by_f32` if the first of its weights and biases
/// that is present has another dtype.
std::string normKernel(llvm::StringRef family, DType dtype,
                       llvm::ArrayRef<std::optional<Place>> parameters);

/// result = layer_norm(input) over rows of `columns`. With an addend: sum = input + addend and
/// result = layer_norm(sum); the sizes of the addend are the trailing sizes of the input.
struct LayerNorm {
  Place input;
  std::optional<Place> addend = {}, weight = {}, bias = {};
  std::optional<Place> sum = {}; ///< Present if and only if the addend is.
  Place result;
  std::optional<Place> rowStatistics = {}; ///< Of the result.
  int64_t columns;
  double eps;
};

/// Adds the record and returns true. Returns false and adds nothing if no kernel takes the tensors
/// and writes the row statistics, if they are given.
bool launchLayerNorm(const LayerNorm &norm, BucketBuilder &builder);

} // namespace cgc::backend

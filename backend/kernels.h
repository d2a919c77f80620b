// Launches of cgc's own kernels: what lowers to one, and how its record is made.
#pragma once

#include "backend/bucket_builder.h"
#include "runtime/kernels/elementwise.h"

namespace cgc::backend {

/// The record of a row of kernels.def, which there is, without its arguments and launch shape.
KernelLaunch launchOf(llvm::StringRef kernel);

/// A launch of a row of kernels.def on a one-dimensional grid.
struct Launch {
  std::string kernel;
  uint64_t blocks = 1;
  uint32_t threads = 1;
  std::vector<std::optional<Place>> reads;
  std::vector<Place> writes; ///< Without moments: what reads them asks for them later.
  std::vector<int64_t> ints = {};
  std::vector<double> floats = {};
};

/// "layer_norm_f16".
std::string kernelNamed(llvm::StringRef name, DType dtype);

/// Adds the record. False, without one, if the target is not cuda, there is no such kernel, or it
/// does not take these tensors: then the op stays with LibTorch.
bool launch(const Launch &launch, BucketBuilder &builder);

/// Of a kernel that gives each of `rows` rows to a warp.
bool launchWarpRows(std::string kernel, int64_t rows, std::vector<std::optional<Place>> reads,
                    const Place &result, BucketBuilder &builder, std::vector<double> floats = {});

/// result = op(x, z); without `z`, `number` stands for it.
bool launchElementwise(ElementwiseOp op, const Place &x, const std::optional<Place> &z,
                       double number, const Place &result, BucketBuilder &builder);

/// Any strides and conversions.
bool launchCopy(const Place &source, const Place &destination, BucketBuilder &builder);

/// If the op is one that elementwise computes: places the result and adds the record.
bool launchPointwise(const ir::Node &node, BucketBuilder &builder);

} // namespace cgc::backend

// Launches of cgc's own kernels: what lowers to one, and how its record is made.
#pragma once

#include "backend/bucket_builder.h"
#include "runtime/kernels/pointwise/compare.h"
#include "runtime/kernels/pointwise/elementwise.h"

#include <variant>

namespace cgc::backend {

/// The record of a row of kernels.def, which there is, without its arguments and launch shape.
KernelLaunch launchOf(llvm::StringRef kernel);

/// Tensors of a record: those it reads, of which some may be absent, and those it writes, without
/// moments: what reads them asks for them later.
struct RecordTensors {
  std::vector<std::optional<Place>> reads;
  std::vector<Place> writes;
};
/// Whether the target has the kernel of `record`, and the kernel takes these tensors.
bool takes(const KernelLaunch &record, const RecordTensors &tensors, const BucketBuilder &builder);
/// Adds the record with these tensors; false, without one, unless takes().
bool launch(KernelLaunch record, const RecordTensors &tensors, BucketBuilder &builder);

/// A launch of a row of kernels.def.
struct Launch {
  std::string kernel;
  uint64_t blocks = 1;
  uint32_t threads = 1;
  std::vector<std::optional<Place>> reads;
  std::vector<Place> writes;
  std::vector<int64_t> ints = {};
  std::vector<double> floats = {};
  uint32_t blocksY = 1, blocksZ = 1, sharedBytes = 0;
};

/// "layer_norm_f16".
std::string kernelNamed(llvm::StringRef name, DType dtype);

/// Whether there is such a kernel, for the target, and it takes these tensors.
bool takes(const Launch &launch, const BucketBuilder &builder);
/// Adds the record; false, without one, unless takes(): then the op stays with LibTorch.
bool launch(const Launch &launch, BucketBuilder &builder);

/// Of a kernel that gives each of `rows` rows to a warp.
bool launchWarpRows(std::string kernel, int64_t rows, std::vector<std::optional<Place>> reads,
                    const Place &result, BucketBuilder &builder, std::vector<double> floats = {});

/// result = op(x, z); without `z`, `number` stands for it.
bool launchElementwise(ElementwiseOp op, const Place &x, const std::optional<Place> &z,
                       double number, const Place &result, BucketBuilder &builder);

/// result = x op z, a bool, as launchElementwise.
bool launchCompare(CompareOp op, const Place &x, const std::optional<Place> &z, double number,
                   const Place &result, BucketBuilder &builder);

/// A tensor, or a number for all of its elements.
using Operand = std::variant<Place, double>;

/// result = x where the condition holds, else z. Without a condition it holds everywhere.
bool launchWhere(const std::optional<Place> &condition, const Operand &x, const Operand &z,
                 const Place &result, BucketBuilder &builder);

/// The argument as one; nothing if it is a number that no double is.
std::optional<Operand> operand(const ir::Arg &arg, const BucketBuilder &builder);

/// Any strides and conversions.
bool launchCopy(const Place &source, const Place &destination, BucketBuilder &builder);

} // namespace cgc::backend

// Launches of cgc's own kernels: helpers that make a kernel's record and add it to the bucket.
#pragma once

#include "backend/bucket_builder.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/pointwise/compare.h"
#include "runtime/kernels/pointwise/elementwise.h"

#include <variant>

namespace cgc::backend {

/// A record of `kernel` without its arguments and launch shape.
KernelLaunch launchOf(const Kernel &kernel);

/// Whether the tensors that the record writes and of which `isWritten` is true may have the memory
/// of those that it reads and of which `isRead` is true: its kernel may overwrite what it reads,
/// and both have `sameLayout`.
bool mayOverwrite(const LaunchRecord &record, llvm::function_ref<bool(TensorId)> isWritten,
                  llvm::function_ref<bool(TensorId)> isRead,
                  llvm::function_ref<bool(TensorId, TensorId)> sameLayout);

/// The operands of a record, in its order: a Place each while a bucket is lowered, or a TensorId.
/// Optional ones may be absent.
template <class T> struct RecordOperands {
  std::vector<std::optional<T>> reads, writes;
};
/// The row statistics that a kernel can write may be left out of `writes`.
using RecordTensors = RecordOperands<Place>;
/// Whether the target has the kernel of `record` and the kernel accepts these tensors.
bool takes(const KernelLaunch &record, const RecordTensors &tensors, const BucketBuilder &builder);
/// Adds the record with these tensors and returns true. Returns false and adds nothing if takes()
/// is false.
bool launch(KernelLaunch record, const RecordTensors &tensors, BucketBuilder &builder);

/// A launch of a kernel of kernels.def with its tensors, numbers and launch shape.
struct Launch {
  std::string kernel;
  uint64_t blocks = 1;
  uint32_t threads = 1;
  std::vector<std::optional<Place>> reads;
  std::vector<Place> writes;
  std::vector<int64_t> ints = {};
  std::vector<double> floats = {};
  uint32_t blocksY = 1, blocksZ = 1, sharedBytes = 0;
  std::optional<Place> rowStatistics = {}; ///< Of the last of `writes`.
};

/// The name of a kernel for a dtype, for example "layer_norm_f16".
std::string kernelNamed(llvm::StringRef name, DType dtype);

/// Whether the kernel exists for the target and accepts these tensors.
bool takes(const Launch &launch, const BucketBuilder &builder);
/// Adds the record and returns true. Returns false and adds nothing if takes() is false; the caller
/// then lowers the op to LibTorch.
bool launch(const Launch &launch, BucketBuilder &builder);

/// Launches a kernel in which one warp computes one of `rows` rows.
bool launchWarpRows(std::string kernel, int64_t rows, std::vector<std::optional<Place>> reads,
                    const Place &result, BucketBuilder &builder, std::vector<double> floats = {},
                    std::optional<Place> rowStatistics = {});

/// Launches result = op(x, z). Without `z`, `number` is the second operand. An operand of another
/// dtype than the result is copied into that of the result first.
bool launchElementwise(ElementwiseOp op, const Place &x, const std::optional<Place> &z,
                       double number, const Place &result, BucketBuilder &builder);

/// Launches result = x op z, a tensor of bools. Without `z`, `number` is the second operand.
bool launchCompare(CompareOp op, const Place &x, const std::optional<Place> &z, double number,
                   const Place &result, BucketBuilder &builder);

/// A tensor, or a number that stands for every element.
using Operand = std::variant<Place, double>;

/// Launches result = x where the condition is true, else z. Without a condition the result is x.
bool launchWhere(const std::optional<Place> &condition, const Operand &x, const Operand &z,
                 const Place &result, BucketBuilder &builder);

/// The argument as an operand. Nothing if it is a number that a double cannot represent exactly.
std::optional<Operand> operand(const ir::Arg &arg, const BucketBuilder &builder);

/// Launches a copy with any strides and any dtype conversion that the kernel `copy` supports.
bool launchCopy(const Place &source, const Place &destination, BucketBuilder &builder);

} // namespace cgc::backend

// cgc.layer_norm_statistics and cgc.layer_norm_backward: cgc's own kernels on cuda for rows of f32;
// else calls of LibTorch's native_layer_norm.
#include "backend/kernels.h"
#include "backend/ops/converted.h"
#include "runtime/base/check.h"
#include "runtime/kernels/rowwise/layer_norm_train.h"

namespace cgc::backend {
namespace {

constexpr llvm::StringLiteral kParameters[] = {"weight", "bias"};

/// Fills the results with 0 if the input has no elements: LibTorch gives their statistics other
/// sizes. Returns whether it did.
bool fillIfEmpty(const ir::Node &node, BucketBuilder &builder) {
  if (node.arg("input").value()->tensor().numElements() != 0)
    return false;
  for (const ir::Value &result : node.results())
    builder.fill(builder.allocate(result), 0);
  return true;
}

/// The dtype of LibTorch's call: f32 for 16 bits, since its CPU kernels keep the statistics of
/// 16-bit tensors in 16 bits, and its CUDA kernels take one dtype.
DType callDTypeOf(const ir::Node &node) {
  const DType dtype = node.arg("input").value()->tensor().dtype;
  return dtypeSize(dtype) == 2 ? DType::F32 : dtype;
}

std::optional<Place> placeOf(const ir::Node &node, llvm::StringRef name, BucketBuilder &builder) {
  const ir::Arg &arg = node.arg(name);
  return arg.isValue() ? std::optional(builder.place(arg.value())) : std::nullopt;
}

/// Rows and columns of a call that normalizes the last dimension of f32; nullopt for other calls.
std::optional<std::pair<int64_t, int64_t>> rowsOf(const ir::Node &node) {
  const ir::TensorType &input = node.arg("input").value()->tensor();
  if (input.dtype != DType::F32 || node.arg("normalized_shape").asInts()->size() != 1)
    return std::nullopt;
  const int64_t columns = input.sizes.back();
  return std::pair(input.numElements() / columns, columns);
}

/// The kernel called `name` for rows of so many columns; null if there is none.
const Kernel *trainKernel(llvm::StringRef name, DType dtype, int64_t columns) {
  return findKernel(kernelNamed(name, dtype) + "_" + std::to_string(normTrainColumns(columns)));
}

/// Adds a launch of cgc's kernel if it takes these tensors.
bool launchStatistics(const ir::Node &node, BucketBuilder &builder) {
  const auto rows = rowsOf(node);
  const Kernel *kernel =
      rows ? trainKernel("layer_norm_statistics", node.result()->tensor().dtype, rows->second)
           : nullptr;
  if (!kernel)
    return false;
  RecordTensors tensors;
  for (llvm::StringRef name : {"input", "weight", "bias", "addend"})
    tensors.reads.push_back(placeOf(node, name, builder));
  for (const ir::Value &result : node.results())
    tensors.writes.emplace_back(builder.allocate(result));
  tensors.writes.resize(4); // Without an addend there is no sum.
  KernelLaunch record = launchOf(*kernel);
  record.grid[0] = static_cast<uint32_t>(normStatisticsBlocks(rows->first));
  record.block[0] = kNormStatisticsThreads;
  record.ints = {rows->first, rows->second};
  record.floats = {*node.arg("eps").asNumber()};
  return launch(std::move(record), tensors, builder);
}

/// Adds launches of cgc's kernels, for the rows and then for weight and bias, if they take these
/// tensors.
bool launchBackward(const ir::Node &node, BucketBuilder &builder) {
  const auto rows = rowsOf(node);
  const DType dtype = node.arg("grad_out").value()->tensor().dtype;
  const auto copy = node.arg("copy").getIf<DType>();
  const Kernel *kernel = rows ? trainKernel("layer_norm_backward", dtype, rows->second) : nullptr;
  if (!kernel || (copy && (*copy != dtype || dtypeSize(dtype) != 2)))
    return false;
  const auto [count, columns] = *rows;
  const uint64_t blocks = normBackwardBlocks(count, columns, builder.multiprocessors());
  const Place sums = builder.temporary(DType::F32, {static_cast<int64_t>(blocks), 2, columns});
  unsigned next = 0;
  const Place gradInput = builder.allocate(*node.result(next++));
  std::optional<Place> gradients[2];
  for (const auto &[name, gradient] : llvm::zip_equal(kParameters, gradients))
    if (!node.arg(name).isNone())
      gradient = builder.allocate(*node.result(next++));
  RecordTensors tensors;
  for (llvm::StringRef name : {"grad_out", "input", "mean", "rstd", "weight", "residual"})
    tensors.reads.push_back(placeOf(node, name, builder));
  tensors.writes = {
      gradInput, copy ? std::optional(builder.allocate(*node.result(next))) : std::nullopt, sums};
  KernelLaunch record = launchOf(*kernel);
  record.grid[0] = static_cast<uint32_t>(blocks);
  record.block[0] = normBackwardThreads(columns);
  record.sharedBytes = normBackwardSharedBytes(columns);
  record.ints = {count, columns};
  if (!launch(std::move(record), tensors, builder))
    return false;
  KernelLaunch parameters = launchOf(*findKernel("layer_norm_parameters_f32"));
  parameters.grid[0] =
      static_cast<uint32_t>((columns + kNormParameterColumns - 1) / kNormParameterColumns);
  parameters.block[0] = kNormParameterThreads;
  parameters.ints = {static_cast<int64_t>(blocks), columns};
  const bool wanted = gradients[0] || gradients[1];
  const bool launched =
      !wanted || launch(std::move(parameters), {{sums}, {gradients[0], gradients[1]}}, builder);
  CGC_CHECK(launched && "the kernel takes the sums of the one before it");
  return true;
}

} // namespace

Status lowerLayerNormStatistics(const ir::Node &node, BucketBuilder &builder) {
  if (fillIfEmpty(node, builder) || launchStatistics(node, builder))
    return Status::ok();
  const DType dtype = callDTypeOf(node);
  ConvertedResults results(builder);
  std::vector<std::optional<Place>> outputs = {results.add(*node.result(), dtype)};
  for (unsigned i : {1, 2})
    outputs.push_back(results.add(*node.result(i), dtype));
  Place input = builder.place(node.arg("input").value());
  if (const auto addend = placeOf(node, "addend", builder)) {
    const Place sum = builder.allocate(*node.result(3));
    addInto(input, *addend, sum, builder);
    input = sum;
  }
  builder.callThenCopy("aten::native_layer_norm", "",
                       {builder.tensor(converted(input, dtype, builder)),
                        builder.arg(node.arg("normalized_shape")),
                        convertedArg(node, "weight", dtype, builder),
                        convertedArg(node, "bias", dtype, builder), builder.arg(node.arg("eps"))},
                       outputs);
  results.convert();
  return Status::ok();
}

Status lowerLayerNormBackward(const ir::Node &node, BucketBuilder &builder) {
  if (fillIfEmpty(node, builder) || launchBackward(node, builder))
    return Status::ok();
  const DType dtype = callDTypeOf(node);
  ConvertedResults results(builder);
  std::vector<std::optional<Place>> outputs = {results.add(*node.result(), dtype)};
  std::vector<int64_t> mask = {1};
  unsigned next = 1;
  for (llvm::StringRef name : kParameters) {
    const bool isGiven = !node.arg(name).isNone();
    mask.push_back(isGiven);
    outputs.push_back(isGiven ? std::optional(results.add(*node.result(next++), dtype))
                              : std::nullopt);
  }
  builder.callThenCopy(
      "aten::native_layer_norm_backward", "",
      {convertedArg(node, "grad_out", dtype, builder), convertedArg(node, "input", dtype, builder),
       builder.arg(node.arg("normalized_shape")), convertedArg(node, "mean", dtype, builder),
       convertedArg(node, "rstd", dtype, builder), convertedArg(node, "weight", dtype, builder),
       convertedArg(node, "bias", dtype, builder), std::move(mask)},
      outputs);
  results.convert();
  const Place gradInput = builder.place(node.result());
  if (const auto residual = placeOf(node, "residual", builder))
    addInto(gradInput, *residual, gradInput, builder);
  if (!node.arg("copy").isNone())
    builder.copy(gradInput, builder.allocate(*node.result(next)));
  return Status::ok();
}

} // namespace cgc::backend

// cgc.layer_norm_statistics and cgc.layer_norm_backward: calls of LibTorch's native_layer_norm.
#include "backend/ops/converted.h"

namespace cgc::backend {
namespace {

/// The dtype of LibTorch's call, and that of its statistics.
struct NormDTypes {
  DType values, statistics;
};

/// Fills the results with 0 if the input has no elements: LibTorch gives their statistics other
/// sizes. Returns whether it did.
bool fillIfEmpty(const ir::Node &node, BucketBuilder &builder) {
  if (node.arg("input").value()->tensor().numElements() != 0)
    return false;
  for (const ir::Value &result : node.results())
    builder.fill(builder.allocate(result), 0);
  return true;
}

NormDTypes dtypesOf(const ir::Node &node, DeviceKind target) {
  std::optional<DType> parameter;
  for (llvm::StringRef name : {"weight", "bias"})
    if (!node.arg(name).isNone())
      parameter = node.arg(name).value()->tensor().dtype;
  const DType values =
      normalizationDType(node.arg("input").value()->tensor().dtype, parameter, target);
  return {values, dtypeSize(values) == 2 ? DType::F32 : values};
}

} // namespace

Status lowerLayerNormStatistics(const ir::Node &node, BucketBuilder &builder) {
  if (fillIfEmpty(node, builder))
    return Status::ok();
  const NormDTypes dtypes = dtypesOf(node, builder.target());
  ConvertedResults results(builder);
  std::vector<std::optional<Place>> outputs = {results.add(*node.result(), dtypes.values)};
  for (unsigned i : {1, 2})
    outputs.push_back(results.add(*node.result(i), dtypes.statistics));
  builder.callThenCopy("aten::native_layer_norm", "",
                       {convertedArg(node, "input", dtypes.values, builder),
                        builder.arg(node.arg("normalized_shape")),
                        convertedArg(node, "weight", dtypes.values, builder),
                        convertedArg(node, "bias", dtypes.values, builder),
                        builder.arg(node.arg("eps"))},
                       outputs);
  results.convert();
  return Status::ok();
}

Status lowerLayerNormBackward(const ir::Node &node, BucketBuilder &builder) {
  if (fillIfEmpty(node, builder))
    return Status::ok();
  const NormDTypes dtypes = dtypesOf(node, builder.target());
  ConvertedResults results(builder);
  std::vector<std::optional<Place>> outputs = {results.add(*node.result(), dtypes.values)};
  std::vector<int64_t> mask = {1};
  unsigned next = 1;
  for (llvm::StringRef name : {"weight", "bias"}) {
    const bool isGiven = !node.arg(name).isNone();
    mask.push_back(isGiven);
    outputs.push_back(isGiven ? std::optional(results.add(*node.result(next++), dtypes.values))
                              : std::nullopt);
  }
  builder.callThenCopy("aten::native_layer_norm_backward", "",
                       {convertedArg(node, "grad_out", dtypes.values, builder),
                        convertedArg(node, "input", dtypes.values, builder),
                        builder.arg(node.arg("normalized_shape")),
                        convertedArg(node, "mean", dtypes.statistics, builder),
                        convertedArg(node, "rstd", dtypes.statistics, builder),
                        convertedArg(node, "weight", dtypes.values, builder),
                        convertedArg(node, "bias", dtypes.values, builder), std::move(mask)},
                       outputs);
  results.convert();
  return Status::ok();
}

} // namespace cgc::backend

// cgc.batch_norm_train and cgc.batch_norm_backward: calls of LibTorch's batch normalization.
#include "backend/ops/converted.h"

namespace cgc::backend {
namespace {

/// The dtype of the parameters and statistics: LibTorch takes one for all. Its CUDA kernels take
/// values of 16 bits with parameters of f32.
DType parameterDType(DType values) {
  return dtypeSize(values) == 2 ? DType::F32 : values;
}

DType valueDType(const ir::Node &node, DeviceKind target) {
  return normalizationDType(node.arg("input").value()->tensor().dtype, std::nullopt, target);
}

} // namespace

Status lowerBatchNormTrain(const ir::Node &node, BucketBuilder &builder) {
  const DType values = valueDType(node, builder.target()), parameters = parameterDType(values);
  ConvertedResults results(builder);
  std::vector<std::optional<Place>> outputs = {results.add(*node.result(), values)};
  for (unsigned i = 1; i < node.numResults(); ++i)
    outputs.push_back(results.add(*node.result(i), parameters));
  std::vector<AtenArg> args = {convertedArg(node, "input", values, builder)};
  const bool isTracked = !node.arg("running_mean").isNone();
  for (llvm::StringRef name : {"weight", "bias", "running_mean", "running_var"})
    if (isTracked || !name.starts_with("running"))
      args.push_back(convertedArg(node, name, parameters, builder));
  args.emplace_back(true);
  for (llvm::StringRef name : {"momentum", "eps"})
    args.push_back(builder.arg(node.arg(name)));
  if (isTracked)
    builder.callThenCopy("aten::_native_batch_norm_legit_functional", "", std::move(args), outputs);
  else
    builder.callThenCopy("aten::_native_batch_norm_legit", "no_stats", std::move(args), outputs);
  results.convert();
  return Status::ok();
}

Status lowerBatchNormBackward(const ir::Node &node, BucketBuilder &builder) {
  const DType values = valueDType(node, builder.target()), parameters = parameterDType(values);
  ConvertedResults results(builder);
  std::vector<std::optional<Place>> outputs = {results.add(*node.result(), values)};
  for (unsigned i : {1, 2})
    outputs.push_back(i < node.numResults()
                          ? std::optional(results.add(*node.result(i), parameters))
                          : std::nullopt);
  const int64_t hasWeight = node.numResults() > 1;
  builder.callThenCopy("aten::native_batch_norm_backward", "",
                       {convertedArg(node, "grad_out", values, builder),
                        convertedArg(node, "input", values, builder),
                        convertedArg(node, "weight", parameters, builder),
                        NoneArg{}, // The running statistics, which only evaluation reads.
                        NoneArg{}, convertedArg(node, "mean", parameters, builder),
                        convertedArg(node, "invstd", parameters, builder),
                        /*train=*/true, builder.arg(node.arg("eps")),
                        std::vector<int64_t>{1, hasWeight, hasWeight}},
                       outputs);
  results.convert();
  return Status::ok();
}

} // namespace cgc::backend

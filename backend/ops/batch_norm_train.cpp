// cgc.batch_norm_train and cgc.batch_norm_backward: kernels on cuda; else calls of LibTorch's batch
// normalization.
#include "backend/kernels.h"
#include "backend/ops/converted.h"
#include "runtime/kernels/batch_norm/batch_norm.h"

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

/// Whether the kernels compute an op: planes of channels on cuda, parameters and statistics in f32.
bool isForKernels(const ir::Node &node, const BucketBuilder &builder) {
  const ir::TensorType &input = node.arg("input").value()->tensor();
  return builder.target() == DeviceKind::Cuda && input.dtype != DType::F64 && input.rank() > 2 &&
         input.numElements() > 0 && input.numElements() <= INT32_MAX &&
         llvm::all_of(node.args(), [](const ir::Arg &arg) {
           return !arg.isValue() || arg.value()->tensor().rank() > 2 ||
                  arg.value()->tensor().dtype == DType::F32;
         });
}

/// An argument as a dense tensor of the dtype of the input.
Place valuesOf(const ir::Node &node, llvm::StringRef name, BucketBuilder &builder) {
  return converted(builder.place(node.arg(name).value()), node.arg("input").value()->tensor().dtype,
                   builder);
}

std::optional<Place> parameter(const ir::Node &node, llvm::StringRef name, BucketBuilder &builder) {
  const ir::Arg &arg = node.arg(name);
  return arg.isNone() ? std::nullopt
                      : std::optional(densePlace(builder.place(arg.value()), builder));
}

int64_t isRelu(const ir::Node &node) {
  return node.arg("relu") == ir::Arg(true);
}

/// Scratch memory for what the first launch writes of each split of each channel of x.
Place splitsOf(const Place &x, int64_t floats, BucketBuilder &builder) {
  const int64_t channels = x.sizes[1];
  return builder.temporary(DType::F32, {channels,
                                        batchNormSplits(channels, x.type().numElements() / channels,
                                                        builder.multiprocessors()),
                                        floats});
}

/// Launches a kernel for splits of channels. Absent results are not written.
void launchSplits(llvm::StringRef name, const Place &splits, RecordTensors tensors,
                  std::vector<int64_t> ints, std::vector<double> floats, BucketBuilder &builder) {
  const Kernel &kernel = *findKernel(kernelNamed(name, tensors.reads[0]->dtype));
  tensors.writes.resize(kernel.writes);
  KernelLaunch record = launchOf(kernel);
  record.grid[0] = static_cast<uint32_t>(splits.sizes[0] * splits.sizes[1]);
  record.block[0] = kBatchNormThreads;
  record.ints = std::move(ints);
  record.floats = std::move(floats);
  const bool isLaunched = launch(std::move(record), tensors, builder);
  CGC_CHECK(isLaunched && "the kernels take what isForKernels() does");
}

void launchBatchNormTrain(const ir::Node &node, BucketBuilder &builder) {
  const Place x = valuesOf(node, "input", builder),
              moments = splitsOf(x, kBatchNormMoments, builder);
  launchSplits("batch_norm_moments", moments, {.reads = {x}, .writes = {moments}}, {}, {}, builder);
  RecordTensors tensors{.reads = {x, moments}, .writes = {}};
  for (llvm::StringRef name : {"weight", "bias"})
    tensors.reads.push_back(parameter(node, name, builder));
  tensors.reads.push_back(node.arg("residual").isNone()
                              ? std::nullopt
                              : std::optional(valuesOf(node, "residual", builder)));
  for (llvm::StringRef name : {"running_mean", "running_var"})
    tensors.reads.push_back(parameter(node, name, builder));
  for (const ir::Value &result : node.results())
    tensors.writes.push_back(builder.allocate(result));
  launchSplits("batch_norm_train", moments, std::move(tensors), {isRelu(node)},
               {*node.arg("momentum").asNumber(), *node.arg("eps").asNumber()}, builder);
}

void launchBatchNormBackward(const ir::Node &node, BucketBuilder &builder) {
  const Place x = valuesOf(node, "input", builder), sums = splitsOf(x, kBatchNormSums, builder);
  RecordTensors tensors{.reads = {valuesOf(node, "grad_out", builder), x}, .writes = {sums}};
  for (llvm::StringRef name : {"mean", "invstd", "weight", "bias"})
    tensors.reads.push_back(parameter(node, name, builder));
  launchSplits("batch_norm_sums", sums, tensors, {isRelu(node)}, {}, builder);
  tensors.reads.push_back(sums);
  tensors.writes.clear();
  for (const ir::Value &result : node.results())
    tensors.writes.push_back(builder.allocate(result));
  launchSplits("batch_norm_backward", sums, std::move(tensors), {isRelu(node)}, {}, builder);
}

/// Adds the residual to y and applies relu, as the op asks, into its result.
void finishTrain(const ir::Node &node, Place y, BucketBuilder &builder) {
  const Place result = builder.allocate(*node.result());
  if (!node.arg("residual").isNone()) {
    const Place sum = isRelu(node) ? builder.temporary(y.dtype, y.sizes) : result;
    builder.callInto("aten::add", "out",
                     {builder.tensor(y),
                      builder.tensor(builder.place(node.arg("residual").value())), int64_t{1}},
                     sum);
    y = sum;
  }
  if (isRelu(node))
    builder.callInto("aten::clamp_min", "out", {builder.tensor(y), int64_t{0}}, result);
}

/// grad_out where the result of relu is above 0; LibTorch normalizes the input again for that.
AtenArg maskedGradient(const ir::Node &node, DType values, BucketBuilder &builder) {
  const ir::Dims &sizes = node.arg("input").value()->tensor().sizes;
  const DType parameters = parameterDType(values);
  const Place y = builder.temporary(values, sizes), masked = builder.temporary(values, sizes);
  builder.callThenCopy("aten::_native_batch_norm_legit", "no_stats",
                       {convertedArg(node, "input", values, builder),
                        convertedArg(node, "weight", parameters, builder),
                        convertedArg(node, "bias", parameters, builder), /*training=*/true,
                        /*momentum=*/0.0, builder.arg(node.arg("eps"))},
                       {y, std::nullopt, std::nullopt});
  builder.callInto("aten::threshold_backward", "grad_input",
                   {convertedArg(node, "grad_out", values, builder), builder.tensor(y), int64_t{0}},
                   masked);
  return builder.tensor(masked);
}

} // namespace

Status lowerBatchNormTrain(const ir::Node &node, BucketBuilder &builder) {
  if (isForKernels(node, builder)) {
    launchBatchNormTrain(node, builder);
    return Status::ok();
  }
  const DType values = valueDType(node, builder.target()), parameters = parameterDType(values);
  const ir::TensorType &type = node.result()->tensor();
  const bool isFused = isRelu(node) || !node.arg("residual").isNone();
  const Place y = isFused ? builder.temporary(type.dtype, type.sizes)
                          : builder.allocate(*node.result()),
              normalized = values == y.dtype ? y : builder.temporary(values, type.sizes);
  ConvertedResults results(builder);
  std::vector<std::optional<Place>> outputs = {normalized};
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
  if (values != y.dtype)
    builder.copy(normalized, y);
  if (isFused)
    finishTrain(node, y, builder);
  return Status::ok();
}

Status lowerBatchNormBackward(const ir::Node &node, BucketBuilder &builder) {
  if (isForKernels(node, builder)) {
    launchBatchNormBackward(node, builder);
    return Status::ok();
  }
  const DType values = valueDType(node, builder.target()), parameters = parameterDType(values);
  ConvertedResults results(builder);
  std::vector<std::optional<Place>> outputs = {results.add(*node.result(), values)};
  for (unsigned i : {1, 2})
    outputs.push_back(i < node.numResults()
                          ? std::optional(results.add(*node.result(i), parameters))
                          : std::nullopt);
  const int64_t hasWeight = node.numResults() > 1;
  AtenArg gradient = isRelu(node) ? maskedGradient(node, values, builder)
                                  : convertedArg(node, "grad_out", values, builder);
  builder.callThenCopy("aten::native_batch_norm_backward", "",
                       {std::move(gradient), convertedArg(node, "input", values, builder),
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

// cgc.batch_norm_train and cgc.batch_norm_backward: kernels on cuda; else calls of LibTorch's batch
// normalization.
#include "backend/kernels.h"
#include "backend/ops/converted.h"
#include "runtime/kernels/batch_norm/batch_norm.h"

#include <algorithm>

namespace cgc::backend {
namespace {

/// The dtype of the parameters and statistics: LibTorch takes one for all. Its CUDA kernels take
/// values of 16 bits with parameters of f32.
DType parameterDType(DType values) {
  return dtypeSize(values) == 2 ? DType::F32 : values;
}

DType valueDType(const ir::Node &node, DeviceKind target) {
  return normalizationDType(node.arg("input").value()->tensor().dtype, target);
}

bool isChannelsLast(const ir::Node &node) {
  return node.arg("channels_last") == ir::Arg(true);
}

/// The order in which the kernels take the tensors of an op. A matrix has rows of channels.
BatchNormOrder orderOf(const ir::Node &node) {
  return isChannelsLast(node) || node.arg("input").value()->tensor().rank() == 2
             ? BatchNormOrder::Nhwc
             : BatchNormOrder::Nchw;
}

/// Whether the kernels compute an op on cuda: parameters and statistics are in f32.
bool isForKernels(const ir::Node &node, const BucketBuilder &builder) {
  const ir::TensorType &input = node.arg("input").value()->tensor();
  const bool hasVectors = input.sizes.back() * dtypeSize(input.dtype) % 16 == 0;
  return builder.target() == DeviceKind::Cuda && input.dtype != DType::F64 &&
         (hasVectors || orderOf(node) == BatchNormOrder::Nchw) && input.numElements() > 0 &&
         input.numElements() <= INT32_MAX && llvm::all_of(node.args(), [&](const ir::Arg &arg) {
           return !arg.isValue() || arg.value()->tensor().sizes == input.sizes ||
                  arg.value()->tensor().dtype == DType::F32;
         });
}

/// An argument as a dense tensor of the dtype of the input.
Place valuesOf(const ir::Node &node, llvm::StringRef name, BucketBuilder &builder) {
  return converted(builder.place(node.arg(name).value()), node.arg("input").value()->tensor().dtype,
                   builder);
}

/// valuesOf() if there is such an argument.
std::optional<Place> optionalValuesOf(const ir::Node &node, llvm::StringRef name,
                                      BucketBuilder &builder) {
  return node.arg(name).isNone() ? std::nullopt : std::optional(valuesOf(node, name, builder));
}

std::optional<Place> parameter(const ir::Node &node, llvm::StringRef name, BucketBuilder &builder) {
  const ir::Arg &arg = node.arg(name);
  return arg.isNone() ? std::nullopt
                      : std::optional(densePlace(builder.place(arg.value()), builder));
}

int64_t isRelu(const ir::Node &node) {
  return node.arg("relu") == ir::Arg(true);
}

/// The launches of an op for splits of channels: their shape, and scratch memory for what the first
/// one writes of each split.
struct Splits {
  BatchNormOrder order;
  uint64_t blocks;
  Place parts;

  Splits(const ir::Node &node, const Place &x, int64_t floats, BucketBuilder &builder)
      : order(orderOf(node)) {
    const bool isNhwc = order == BatchNormOrder::Nhwc;
    const int64_t channels = isNhwc ? x.sizes.back() : x.sizes[1],
                  elements = x.type().numElements() / channels, width = 16 / dtypeSize(x.dtype),
                  multiprocessors = builder.multiprocessors(),
                  splits = isNhwc ? batchNormRowSplits(channels, width, elements, multiprocessors)
                                  : batchNormSplits(channels, elements, multiprocessors);
    blocks = uint64_t(splits * (isNhwc ? batchNormTiles(channels, width) : channels));
    parts = builder.temporary(DType::F32, {channels, splits, floats});
  }

  /// Absent results are not written.
  void launch(std::string name, RecordTensors tensors, std::vector<int64_t> ints,
              std::vector<double> floats, BucketBuilder &builder) const {
    name += order == BatchNormOrder::Nhwc ? "_nhwc" : "_nchw";
    const Kernel &kernel = *findKernel(kernelNamed(name, tensors.reads[0]->dtype));
    tensors.writes.resize(kernel.writes);
    KernelLaunch record = launchOf(kernel);
    record.grid[0] = static_cast<uint32_t>(blocks);
    record.block[0] = kBatchNormThreads;
    record.ints = std::move(ints);
    record.floats = std::move(floats);
    const bool isLaunched = backend::launch(std::move(record), tensors, builder);
    CGC_CHECK(isLaunched && "the kernels take what isForKernels() does");
  }
};

void launchBatchNormTrain(const ir::Node &node, BucketBuilder &builder) {
  const Place x = valuesOf(node, "input", builder);
  const Splits splits(node, x, kBatchNormMoments, builder);
  splits.launch("batch_norm_moments", {.reads = {x}, .writes = {splits.parts}}, {}, {}, builder);
  RecordTensors tensors{.reads = {x, splits.parts}, .writes = {}};
  for (llvm::StringRef name : {"weight", "bias"})
    tensors.reads.push_back(parameter(node, name, builder));
  tensors.reads.push_back(optionalValuesOf(node, "residual", builder));
  for (llvm::StringRef name : {"running_mean", "running_var"})
    tensors.reads.push_back(parameter(node, name, builder));
  for (const ir::Value &result : node.results())
    tensors.writes.push_back(builder.allocate(result));
  splits.launch("batch_norm_train", std::move(tensors), {isRelu(node)},
                {*node.arg("momentum").asNumber(), *node.arg("eps").asNumber()}, builder);
}

void launchBatchNormBackward(const ir::Node &node, BucketBuilder &builder) {
  const Place x = valuesOf(node, "input", builder);
  const Splits splits(node, x, kBatchNormSums, builder);
  RecordTensors tensors{.reads = {valuesOf(node, "grad_out", builder), x},
                        .writes = {splits.parts}};
  for (llvm::StringRef name : {"mean", "invstd", "weight", "bias"})
    tensors.reads.push_back(parameter(node, name, builder));
  RecordTensors ofSums = tensors;
  tensors.writes.clear();
  for (const ir::Value &result : node.results())
    tensors.writes.push_back(builder.allocate(result));
  for (llvm::StringRef name : {"result", "addend"})
    ofSums.reads.push_back(optionalValuesOf(node, name, builder));
  if (!node.arg("result").isNone()) { // The second launch reads what the first masks.
    tensors.reads.front() = tensors.writes.back();
    ofSums.writes.push_back(tensors.writes.back());
    tensors.writes.pop_back();
  }
  splits.launch("batch_norm_sums", std::move(ofSums), {isRelu(node)}, {}, builder);
  tensors.reads.push_back(splits.parts);
  splits.launch("batch_norm_backward", std::move(tensors), {isRelu(node)}, {}, builder);
}

/// A tensor like the input as LibTorch takes it, [N, C, ...].
Place channelsFirst(const ir::Node &node, Place place) {
  if (isChannelsLast(node)) {
    std::rotate(place.sizes.begin() + 1, place.sizes.end() - 1, place.sizes.end());
    std::rotate(place.strides.begin() + 1, place.strides.end() - 1, place.strides.end());
  }
  return place;
}
AtenArg channelsFirstArg(const ir::Node &node, llvm::StringRef name, DType dtype,
                         BucketBuilder &builder) {
  return builder.tensor(
      channelsFirst(node, converted(builder.place(node.arg(name).value()), dtype, builder)));
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

/// grad_out plus the addend where the given result is above 0, which is the op's last result.
AtenArg gradientBeforeRelu(const ir::Node &node, DType values, BucketBuilder &builder) {
  Place grad = builder.place(node.arg("grad_out").value());
  if (!node.arg("addend").isNone()) {
    const Place sum = builder.temporary(grad.dtype, grad.sizes);
    builder.callInto("aten::add", "out",
                     {builder.tensor(grad),
                      builder.tensor(builder.place(node.arg("addend").value())), int64_t{1}},
                     sum);
    grad = sum;
  }
  const Place masked = builder.allocate(*node.result(node.numResults() - 1));
  builder.callInto(
      "aten::threshold_backward", "grad_input",
      {builder.tensor(grad), builder.tensor(builder.place(node.arg("result").value())), int64_t{0}},
      masked);
  return builder.tensor(channelsFirst(node, converted(masked, values, builder)));
}

/// grad_out where the result of relu is above 0; LibTorch normalizes the input again for that.
AtenArg maskedGradient(const ir::Node &node, DType values, BucketBuilder &builder) {
  const ir::Dims &sizes = node.arg("input").value()->tensor().sizes;
  const DType parameters = parameterDType(values);
  const Place y = builder.temporary(values, sizes), masked = builder.temporary(values, sizes);
  builder.callThenCopy("aten::_native_batch_norm_legit", "no_stats",
                       {channelsFirstArg(node, "input", values, builder),
                        convertedArg(node, "weight", parameters, builder),
                        convertedArg(node, "bias", parameters, builder), /*training=*/true,
                        /*momentum=*/0.0, builder.arg(node.arg("eps"))},
                       {channelsFirst(node, y), std::nullopt, std::nullopt});
  builder.callInto("aten::threshold_backward", "grad_input",
                   {convertedArg(node, "grad_out", values, builder), builder.tensor(y), int64_t{0}},
                   masked);
  return builder.tensor(channelsFirst(node, masked));
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
  std::vector<std::optional<Place>> outputs = {channelsFirst(node, normalized)};
  for (unsigned i = 1; i < node.numResults(); ++i)
    outputs.push_back(results.add(*node.result(i), parameters));
  std::vector<AtenArg> args = {channelsFirstArg(node, "input", values, builder)};
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
  const int64_t hasWeight = !node.arg("weight").isNone();
  ConvertedResults results(builder);
  std::vector<std::optional<Place>> outputs = {
      channelsFirst(node, results.add(*node.result(), values))};
  for (unsigned i : {1, 2})
    outputs.push_back(hasWeight ? std::optional(results.add(*node.result(i), parameters))
                                : std::nullopt);
  AtenArg gradient = !node.arg("result").isNone() ? gradientBeforeRelu(node, values, builder)
                     : isRelu(node)               ? maskedGradient(node, values, builder)
                                    : channelsFirstArg(node, "grad_out", values, builder);
  builder.callThenCopy("aten::native_batch_norm_backward", "",
                       {std::move(gradient), channelsFirstArg(node, "input", values, builder),
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

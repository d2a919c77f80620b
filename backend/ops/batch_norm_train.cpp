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
  tensors.reads.push_back(std::nullopt); // No residual.
  for (llvm::StringRef name : {"running_mean", "running_var"})
    tensors.reads.push_back(parameter(node, name, builder));
  for (const ir::Value &result : node.results())
    tensors.writes.push_back(builder.allocate(result));
  launchSplits("batch_norm_train", moments, std::move(tensors), {/*relu=*/0},
               {*node.arg("momentum").asNumber(), *node.arg("eps").asNumber()}, builder);
}

void launchBatchNormBackward(const ir::Node &node, BucketBuilder &builder) {
  const Place x = valuesOf(node, "input", builder), sums = splitsOf(x, kBatchNormSums, builder);
  RecordTensors tensors{.reads = {valuesOf(node, "grad_out", builder), x}, .writes = {sums}};
  for (llvm::StringRef name : {"mean", "invstd", "weight"})
    tensors.reads.push_back(parameter(node, name, builder));
  tensors.reads.push_back(std::nullopt); // The bias, which only relu needs.
  launchSplits("batch_norm_sums", sums, tensors, {/*relu=*/0}, {}, builder);
  tensors.reads.push_back(sums);
  tensors.writes.clear();
  for (const ir::Value &result : node.results())
    tensors.writes.push_back(builder.allocate(result));
  launchSplits("batch_norm_backward", sums, std::move(tensors), {/*relu=*/0}, {}, builder);
}

} // namespace

Status lowerBatchNormTrain(const ir::Node &node, BucketBuilder &builder) {
  if (isForKernels(node, builder)) {
    launchBatchNormTrain(node, builder);
    return Status::ok();
  }
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

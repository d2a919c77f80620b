// softmax and log_softmax: cgc's own kernels over the last dimension on cuda; else LibTorch. If the
// result has a wider dtype, the input is converted first, except where LibTorch's CUDA kernel for
// softmax widens f16 itself.
#include "runtime/kernels/rowwise/softmax.h"
#include "backend/kernels.h"
#include "backend/lowering.h"

namespace cgc::backend {
namespace {

/// An input that is strided, or of another dtype than the result, is copied first.
bool launchRows(const char *kernel, const Place &input, const Place &result,
                BucketBuilder &builder) {
  if (input.sizes.empty() || input.type().numElements() == 0)
    return false;
  const int64_t columns = input.sizes.back(), rows = input.type().numElements() / columns;
  const bool isCopied = input.dtype != result.dtype || !input.type().isContiguous();
  const Place x = isCopied ? builder.temporary(result.dtype, input.sizes) : input;
  const Launch softmax = {.kernel = kernelNamed(kernel, result.dtype),
                          .blocks = softmaxBlocks(rows, columns),
                          .threads = kSoftmaxThreads,
                          .reads = {x},
                          .writes = {result}};
  if (!takes(softmax, builder))
    return false;
  if (isCopied)
    builder.copy(input, x);
  return launch(softmax, builder);
}

bool isOverLastDim(const ir::Node &node, const Place &input) {
  const auto dim = node.arg("dim").as<int64_t>();
  return dim == -1 || dim == static_cast<int64_t>(input.sizes.size()) - 1;
}

} // namespace

Status lowerSoftmax(const ir::Node &node, BucketBuilder &builder) {
  Place input = builder.place(node.arg("self").value());
  const Place result = builder.allocate(*node.result());
  const bool isLast = isOverLastDim(node, input);
  const bool widens = !isLast && builder.target() == DeviceKind::Cuda &&
                      input.dtype == DType::F16 && result.dtype == DType::F32;
  if (input.dtype != result.dtype && !widens) {
    Place converted = builder.temporary(result.dtype, input.sizes);
    builder.copy(input, converted);
    input = converted;
  }
  if (isLast && launchRows("softmax", input, result, builder))
    return Status::ok();
  builder.callInto("aten::_softmax", "out",
                   {builder.tensor(input), builder.arg(node.arg("dim")), widens}, result);
  return Status::ok();
}

Status lowerLogSoftmax(const ir::Node &node, BucketBuilder &builder) {
  const Place input = builder.place(node.arg("self").value());
  const Place result = builder.allocate(*node.result());
  if (!isOverLastDim(node, input) || !launchRows("log_softmax", input, result, builder))
    builder.callThenCopy("aten::log_softmax", "int", callArgs(node, builder), {result});
  return Status::ok();
}

} // namespace cgc::backend

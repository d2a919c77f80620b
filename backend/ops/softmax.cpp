// softmax: cgc's own kernel over the last dimension on cuda; else LibTorch. If the result has a
// wider dtype, the input is converted first, except where LibTorch's CUDA kernel widens f16 itself.
#include "runtime/kernels/rowwise/softmax.h"
#include "backend/kernels.h"
#include "backend/lowering.h"

namespace cgc::backend {
namespace {

bool launchRows(const Place &input, const Place &result, BucketBuilder &builder) {
  if (input.sizes.empty() || input.type().numElements() == 0)
    return false;
  int64_t columns = input.sizes.back(), rows = input.type().numElements() / columns;
  return launch({.kernel = kernelNamed("softmax", input.dtype),
                 .blocks = softmaxBlocks(rows, columns),
                 .threads = kSoftmaxThreads,
                 .reads = {input},
                 .writes = {result}},
                builder);
}

} // namespace

Status lowerSoftmax(const ir::Node &node, BucketBuilder &builder) {
  Place input = builder.place(node.arg("self").value());
  Place result = builder.allocate(*node.result());
  bool isLast = node.arg("dim").as<int64_t>() == -1 ||
                node.arg("dim").as<int64_t>() == int64_t(input.sizes.size()) - 1;
  bool widens = !isLast && builder.target() == DeviceKind::Cuda && input.dtype == DType::F16 &&
                result.dtype == DType::F32;
  if (input.dtype != result.dtype && !widens) {
    Place converted = builder.temporary(result.dtype, input.sizes);
    builder.copy(input, converted);
    input = converted;
  }
  if (isLast && launchRows(input, result, builder))
    return Status::ok();
  builder.callInto("aten::_softmax", "out",
                   {builder.tensor(input), builder.arg(node.arg("dim")), widens}, result);
  return Status::ok();
}

} // namespace cgc::backend

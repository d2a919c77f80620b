// cgc.gradient_norm: sums of squares by kernels on cuda.
#include "backend/kernels.h"
#include "backend/ops/converted.h"
#include "runtime/kernels/optimizer/gradient_norm.h"

#include <numeric>

namespace cgc::backend {
namespace {

/// Launches the kernels and returns true. Returns false and adds nothing if they do not take the
/// gradients.
bool launchNorm(const std::vector<Place> &gradients, const Place &result, BucketBuilder &builder) {
  std::vector<uint64_t> chunks; // Of each tensor that has elements.
  std::vector<Place> tensors;
  for (const Place &gradient : gradients)
    if (const int64_t elements = gradient.type().numElements(); elements > 0) {
      tensors.push_back(gradient);
      chunks.push_back(groupChunks(uint64_t(elements)));
    }
  const uint64_t total = std::accumulate(chunks.begin(), chunks.end(), uint64_t{0});
  if (builder.target() != DeviceKind::Cuda || total == 0 || total > INT32_MAX ||
      llvm::any_of(tensors, [](const Place &tensor) { return tensor.dtype == DType::F64; }))
    return false;
  const Place sums = builder.temporary(DType::F32, {int64_t(total)});
  Place part = sums;
  for (size_t begin = 0; begin < tensors.size(); begin += kMaxTensorGroups) {
    const size_t end = std::min(begin + kMaxTensorGroups, tensors.size());
    KernelLaunch record = launchOf(*findKernel("square_sums_f32"));
    RecordTensors operands;
    for (size_t i = begin; i < end; ++i)
      operands.reads.emplace_back(converted(flatPlace(tensors[i], builder), DType::F32, builder));
    const uint64_t count =
        std::accumulate(chunks.begin() + begin, chunks.begin() + end, uint64_t{0});
    part.sizes = {int64_t(count)};
    operands.writes = {part};
    part.offset += count * sizeof(float);
    record.grid[0] = static_cast<uint32_t>(groupBlocks(count, builder.multiprocessors()));
    record.block[0] = kGroupThreads;
    const bool isLaunched = launch(std::move(record), operands, builder);
    CGC_CHECK(isLaunched && "the kernel takes dense f32 tensors");
  }
  const bool isLaunched = launch({.kernel = "gradient_norm_f32",
                                  .blocks = 1,
                                  .threads = kNormThreads,
                                  .reads = {sums},
                                  .writes = {result}},
                                 builder);
  CGC_CHECK(isLaunched && "the kernel takes dense f32 sums");
  return true;
}

} // namespace

Result<bool> launchGradientNorm(const ir::Node &node, BucketBuilder &builder) {
  std::vector<Place> gradients;
  for (const ir::Arg &arg : node.arg("gradients").list())
    gradients.push_back(builder.place(arg.value()));
  return launchNorm(gradients, builder.allocate(*node.result()), builder);
}

} // namespace cgc::backend

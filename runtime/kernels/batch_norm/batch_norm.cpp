// Checks launches of batch_norm_*.
#include "runtime/kernels/batch_norm/batch_norm.h"

#include "runtime/kernels/kernel_checks.h"

#include <initializer_list>

namespace cgc {
namespace {

/// Checks x, the parts of its channels, [channels, splits, floats], and the launch shape. `others`
/// are tensors of the elements of x; those that are absent are left out.
Result<BatchNormLayout> checkChannels(const LaunchView &launch, DType dtype, BatchNormOrder order,
                                      const OperandView &x, const OperandView &parts,
                                      int64_t floats,
                                      std::initializer_list<const OperandView *> others) {
  const uint64_t elements = elementsOf(x);
  if (!isDenseOf(x, dtype, elements) || x.sizes.size() < 2 || elements == 0 || elements > INT32_MAX)
    return refuseLaunch("x has to be dense, of two dimensions or more and 1 to 2^31 - 1 elements");
  const bool isNhwc = order == BatchNormOrder::Nhwc;
  const int64_t channels = isNhwc ? x.sizes.back() : x.sizes[1],
                ofChannel = int64_t(elements) / channels, plane = ofChannel / x.sizes[0];
  if (parts.sizes.size() != 3 || parts.sizes[0] != channels || parts.sizes[1] < 1 ||
      parts.sizes[2] != floats || !isDenseOf(parts, DType::F32, elementsOf(parts)))
    return refuseLaunch("the parts have to be dense f32, [channels, splits, " +
                        std::to_string(floats) + "]");
  const auto vector = int64_t(16 / dtypeSize(dtype));
  const int64_t splits = parts.sizes[1],
                columns = isNhwc ? batchNormTiles(channels, vector) : channels;
  if (!hasShape(launch, uint64_t(columns * splits), kBatchNormThreads))
    return refuseLaunch("the grid has to be {channels, or tiles of them, times splits, 1, 1}, the "
                        "block {256, 1, 1}, without shared memory");
  const auto fits = [&](int64_t width) {
    return (isNhwc ? channels : plane) % width == 0 && isAligned(x, width * dtypeSize(dtype)) &&
           std::ranges::all_of(others, [&](const OperandView *other) {
             return isAligned(*other, width * dtypeSize(dtype));
           });
  };
  for (const OperandView *other : others)
    if (!isAbsentOrDenseOf(*other, dtype, elements))
      return refuseLaunch("y, the residual and the gradients of x and y have to be as x");
  if (isNhwc && !fits(vector))
    return refuseLaunch("rows have to begin and end at multiples of 16 bytes");
  const int64_t width = fits(vector) ? vector : fits(vector / 2) ? vector / 2 : 1;
  return BatchNormLayout{uint32_t(channels),
                         uint32_t(plane),
                         uint32_t(ofChannel),
                         uint32_t(splits),
                         uint32_t(batchNormSplitElements(ofChannel, splits)),
                         uint32_t(width),
                         uint32_t(batchNormTileVectors(channels, vector))};
}

/// Refuses a tensor of `channels` that is neither absent nor dense f32 with an element for each.
Status checkOfChannels(std::initializer_list<const OperandView *> tensors, uint32_t channels) {
  for (const OperandView *tensor : tensors)
    if (!isAbsentOrDenseOf(*tensor, DType::F32, channels))
      return refuseLaunch("weight, bias, statistics and their gradients have to be dense f32, of "
                          "as many elements as there are channels");
  return Status::ok();
}

/// InvalidFile if one of the tensors is absent.
Status checkPresent(std::initializer_list<const OperandView *> tensors) {
  for (const OperandView *tensor : tensors)
    if (!tensor->isPresent())
      return refuseLaunch("a tensor that is not optional is absent");
  return Status::ok();
}

} // namespace

Result<BatchNormLayout> checkBatchNormMoments(const LaunchView &launch, DType dtype,
                                              BatchNormOrder order) {
  return checkChannels(launch, dtype, order, launch.reads[0], launch.writes[0], kBatchNormMoments,
                       {});
}

Result<BatchNormLayout> checkBatchNormTrain(const LaunchView &launch, DType dtype,
                                            BatchNormOrder order) {
  const auto &reads = launch.reads, &writes = launch.writes;
  if (reads.size() > kTrainRunningVar + 1)
    return refuseLaunch("there has to be one group of running statistics");
  CGC_TRY(checkPresent({&writes[kTrainY], &writes[kTrainMean], &writes[kTrainInvstd]}));
  CGC_ASSIGN_OR_RETURN(const BatchNormLayout layout,
                       checkChannels(launch, dtype, order, reads[kTrainX], reads[kTrainMoments],
                                     kBatchNormMoments,
                                     {&reads[kTrainResidual], &writes[kTrainY]}));
  CGC_TRY(checkOfChannels({&reads[kTrainWeight], &reads[kTrainBias], &reads[kTrainRunningMean],
                           &reads[kTrainRunningVar], &writes[kTrainMean], &writes[kTrainInvstd],
                           &writes[kTrainNewMean], &writes[kTrainNewVar]},
                          layout.channels));
  const bool isTracked = reads[kTrainRunningMean].isPresent();
  for (const OperandView *statistic :
       {&reads[kTrainRunningVar], &writes[kTrainNewMean], &writes[kTrainNewVar]})
    if (statistic->isPresent() != isTracked)
      return refuseLaunch("the running statistics and their new values have to be there, or none");
  return layout;
}

Result<BatchNormLayout> checkBatchNormSums(const LaunchView &launch, DType dtype,
                                           BatchNormOrder order) {
  const OperandView &gradient = launch.reads[0], &x = launch.reads[1], &mean = launch.reads[2],
                    &invstd = launch.reads[3], &weight = launch.reads[4], &bias = launch.reads[5],
                    &result = launch.reads[6], &addend = launch.reads[7];
  const OperandView &masked = launch.writes[1];
  CGC_TRY(checkPresent({&gradient, &mean, &invstd}));
  if (masked.isPresent() != result.isPresent() || (addend.isPresent() && !result.isPresent()))
    return refuseLaunch("the result of relu and the masked gradient have to be there, or neither "
                        "and no addend");
  CGC_ASSIGN_OR_RETURN(const BatchNormLayout layout,
                       checkChannels(launch, dtype, order, x, launch.writes[0], kBatchNormSums,
                                     {&gradient, &result, &addend, &masked}));
  CGC_TRY(checkOfChannels({&mean, &invstd, &weight, &bias}, layout.channels));
  return layout;
}

Result<BatchNormLayout> checkBatchNormBackward(const LaunchView &launch, DType dtype,
                                               BatchNormOrder order) {
  const OperandView &gradient = launch.reads[0], &x = launch.reads[1], &mean = launch.reads[2],
                    &invstd = launch.reads[3], &weight = launch.reads[4], &bias = launch.reads[5],
                    &sums = launch.reads[6];
  const OperandView &dx = launch.writes[0];
  CGC_TRY(checkPresent({&gradient, &mean, &invstd, &dx}));
  CGC_ASSIGN_OR_RETURN(
      const BatchNormLayout layout,
      checkChannels(launch, dtype, order, x, sums, kBatchNormSums, {&gradient, &dx}));
  CGC_TRY(checkOfChannels({&mean, &invstd, &weight, &bias, &launch.writes[1], &launch.writes[2]},
                          layout.channels));
  return layout;
}

#define CGC_BATCH_NORM_CHECKS(NAME, DTYPE, ORDER)                                                  \
  CGC_KERNEL_CHECK(batch_norm_moments_##NAME, checkBatchNormMoments, DTYPE, BatchNormOrder::ORDER) \
  CGC_KERNEL_CHECK(batch_norm_train_##NAME, checkBatchNormTrain, DTYPE, BatchNormOrder::ORDER)     \
  CGC_KERNEL_CHECK(batch_norm_sums_##NAME, checkBatchNormSums, DTYPE, BatchNormOrder::ORDER)       \
  CGC_KERNEL_CHECK(batch_norm_backward_##NAME, checkBatchNormBackward, DTYPE, BatchNormOrder::ORDER)
CGC_BATCH_NORM_CHECKS(nchw_f32, DType::F32, Nchw)
CGC_BATCH_NORM_CHECKS(nchw_f16, DType::F16, Nchw)
CGC_BATCH_NORM_CHECKS(nchw_bf16, DType::BF16, Nchw)
CGC_BATCH_NORM_CHECKS(nhwc_f32, DType::F32, Nhwc)
CGC_BATCH_NORM_CHECKS(nhwc_f16, DType::F16, Nhwc)
CGC_BATCH_NORM_CHECKS(nhwc_bf16, DType::BF16, Nhwc)
#undef CGC_BATCH_NORM_CHECKS

} // namespace cgc

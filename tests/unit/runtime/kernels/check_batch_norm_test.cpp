// Checks of batch_norm kernels refuse launches that would access memory outside their tensors; the
// split of channels. Needs no GPU.
#include "runtime/kernels/batch_norm/batch_norm.h"
#include "tests/unit/runtime/kernels/check_launch.h"

namespace cgc::test {
namespace {

constexpr DType kF32 = DType::F32;

Tensor likeX() {
  return {kAddress, {2, 3, 4, 6}, {}, DType::BF16};
}
Tensor ofChannels() {
  return {kAddress, {3}, {}, kF32};
}
Tensor splitsOf(int64_t floats) {
  return {kAddress, {3, 5, floats}, {}, kF32};
}

Launch launchOf(const std::string &kernel) {
  return {.kernel = kernel + "_nchw_bf16",
          .grid = {15, 1, 1},
          .block = {kBatchNormThreads, 1, 1},
          .sharedBytes = 0};
}

Launch momentsLaunch() {
  Launch launch = launchOf("batch_norm_moments");
  launch.reads = {likeX()};
  launch.writes = {splitsOf(kBatchNormMoments)};
  return launch;
}
Launch trainLaunch() {
  Launch launch = launchOf("batch_norm_train");
  launch.reads = {
      likeX(),     splitsOf(kBatchNormMoments), ofChannels(), ofChannels(), likeX(), ofChannels(),
      ofChannels()};
  launch.writes = {likeX(), ofChannels(), ofChannels(), ofChannels(), ofChannels()};
  launch.ints = {1};
  launch.floats = {0.1, 1e-5};
  return launch;
}
Launch sumsLaunch() {
  Launch launch = launchOf("batch_norm_sums");
  launch.reads = {likeX(), likeX(), ofChannels(), ofChannels(), ofChannels(), ofChannels()};
  launch.reads.resize(8); // Without the result of relu and an addend.
  launch.writes = {splitsOf(kBatchNormSums), {}};
  launch.ints = {0};
  return launch;
}
Launch backwardLaunch() {
  Launch launch = sumsLaunch();
  launch.kernel = "batch_norm_backward_nchw_bf16";
  launch.reads.resize(6);
  launch.reads.push_back(splitsOf(kBatchNormSums));
  launch.writes = {likeX(), ofChannels(), ofChannels()};
  return launch;
}

const std::string kX = "x has to be", kSplits = "the parts have to be",
                  kGrid = "the grid has to be", kLikeX = "have to be as x",
                  kOfChannels = "as there are channels", kAbsent = "not optional is absent";

/// What all kernels refuse; reads[x] is x.
void expectCommonRefusals(const Launch &good, size_t x) {
  expectRefusals(good, {{[=](Launch &l) { l.reads[x].dtype = DType::F16; }, kX},
                        {[=](Launch &l) { l.reads[x].sizes = {2}; }, kX},
                        {[=](Launch &l) { l.reads[x].sizes = {2, 0, 4}; }, kX},
                        {[=](Launch &l) { l.reads[x].strides = {72, 1, 18, 3}; }, kX},
                        {[=](Launch &l) { l.reads[x].sizes = {1 << 15, 3, 1 << 15}; }, kX},
                        {[](Launch &l) { l.grid[0] = 14; }, kGrid},
                        {[](Launch &l) { l.grid[1] = 2; }, kGrid},
                        {[](Launch &l) { l.block[0] = 128; }, kGrid},
                        {[](Launch &l) { l.sharedBytes = 16; }, kGrid}});
}

TEST(CheckBatchNorm, RefusesMoments) {
  expectCommonRefusals(momentsLaunch(), 0);
  expectRefusals(momentsLaunch(), {{[](Launch &l) { l.writes[0].sizes = {3, 5, 2}; }, kSplits},
                                   {[](Launch &l) { l.writes[0].sizes = {3, 0, 3}; }, kSplits},
                                   {[](Launch &l) { l.writes[0].sizes = {15, 3}; }, kSplits},
                                   {[](Launch &l) { l.writes[0].sizes = {4, 5, 3}; }, kSplits},
                                   {[](Launch &l) { l.writes[0].strides = {30, 6, 2}; }, kSplits},
                                   {[](Launch &l) { l.writes[0].dtype = DType::F64; }, kSplits},
                                   {[](Launch &l) { l.writes[0] = {}; }, kSplits}});
}

TEST(CheckBatchNorm, RefusesTrain) {
  const std::string running = "the running statistics and their new values";
  expectCommonRefusals(trainLaunch(), kTrainX);
  expectRefusals(trainLaunch(),
                 {{[](Launch &l) { l.reads[kTrainMoments].sizes = {3, 5, 2}; }, kSplits},
                  {[](Launch &l) { l.reads[kTrainWeight].sizes = {2}; }, kOfChannels},
                  {[](Launch &l) { l.reads[kTrainBias].dtype = DType::BF16; }, kOfChannels},
                  {[](Launch &l) { l.reads[kTrainResidual].sizes = {3}; }, kLikeX},
                  {[](Launch &l) { l.reads[kTrainResidual].strides = {0, 0, 0, 0}; }, kLikeX},
                  {[](Launch &l) { l.reads[kTrainRunningMean] = {}; }, running},
                  {[](Launch &l) { l.reads[kTrainRunningVar].sizes = {4}; }, kOfChannels},
                  {[](Launch &l) { l.writes[kTrainY] = {}; }, kAbsent},
                  {[](Launch &l) { l.writes[kTrainY].sizes = {2, 3, 4}; }, kLikeX},
                  {[](Launch &l) { l.writes[kTrainMean] = {}; }, kAbsent},
                  {[](Launch &l) { l.writes[kTrainInvstd].sizes = {2}; }, kOfChannels},
                  {[](Launch &l) { l.writes[kTrainNewMean] = {}; }, running},
                  {[](Launch &l) { l.writes[kTrainNewVar].sizes = {2}; }, kOfChannels},
                  {[](Launch &l) {
                     l.reads.resize(9, ofChannels());
                     l.writes.resize(7, ofChannels());
                   },
                   "one group"}});
  Launch bare = trainLaunch();
  for (const size_t i :
       {kTrainWeight, kTrainBias, kTrainResidual, kTrainRunningMean, kTrainRunningVar})
    bare.reads[i] = {};
  bare.writes[kTrainNewMean] = bare.writes[kTrainNewVar] = {};
  expectTaken(bare);
}

TEST(CheckBatchNorm, RefusesSums) {
  expectCommonRefusals(sumsLaunch(), 1);
  expectRefusals(sumsLaunch(), {{[](Launch &l) { l.reads[0] = {}; }, kAbsent},
                                {[](Launch &l) { l.reads[0].sizes = {2, 3, 4}; }, kLikeX},
                                {[](Launch &l) { l.reads[2] = {}; }, kAbsent},
                                {[](Launch &l) { l.reads[3].sizes = {2}; }, kOfChannels},
                                {[](Launch &l) { l.reads[5].dtype = DType::F16; }, kOfChannels},
                                {[](Launch &l) { l.writes[0].sizes = {3, 5, 3}; }, kSplits}});
  Launch masking = sumsLaunch();
  masking.reads[6] = masking.reads[7] = masking.writes[1] = likeX();
  expectTaken(masking);
  const std::string neither = "the result of relu and the masked gradient";
  expectRefusals(masking, {{[](Launch &l) { l.reads[6] = {}; }, neither},
                           {[](Launch &l) { l.writes[1] = {}; }, neither},
                           {[](Launch &l) { l.reads[6] = l.writes[1] = {}; }, neither},
                           {[](Launch &l) { l.reads[6].sizes = {2, 3, 4}; }, kLikeX},
                           {[](Launch &l) { l.reads[7].dtype = kF32; }, kLikeX},
                           {[](Launch &l) { l.writes[1].strides = {0, 0, 0, 0}; }, kLikeX}});
}

TEST(CheckBatchNorm, RefusesBackward) {
  expectCommonRefusals(backwardLaunch(), 1);
  expectRefusals(backwardLaunch(),
                 {{[](Launch &l) { l.reads[0].dtype = kF32; }, kLikeX},
                  {[](Launch &l) { l.reads[6].sizes = {3, 4, 2}; }, kGrid},
                  {[](Launch &l) { l.reads[6] = {}; }, kSplits},
                  {[](Launch &l) { l.writes[0] = {}; }, kAbsent},
                  {[](Launch &l) { l.writes[0].strides = {0, 0, 0, 0}; }, kLikeX},
                  {[](Launch &l) { l.writes[1].sizes = {4}; }, kOfChannels},
                  {[](Launch &l) { l.writes[2].dtype = DType::F16; }, kOfChannels}});
  Launch bare = backwardLaunch();
  bare.reads[4] = bare.reads[5] = bare.writes[1] = bare.writes[2] = {};
  expectTaken(bare);
}

/// The new running statistics may overwrite the old ones, but nothing else that is read.
TEST(CheckBatchNorm, OverwritesRunningStatisticsOnly) {
  const Kernel &train = *findKernel("batch_norm_train_nchw_f32");
  EXPECT_TRUE(train.mayOverwrite(kTrainNewMean, kTrainRunningMean));
  EXPECT_TRUE(train.mayOverwrite(kTrainNewVar, kTrainRunningVar));
  EXPECT_FALSE(train.mayOverwrite(kTrainNewMean, kTrainWeight));
  EXPECT_FALSE(train.mayOverwrite(kTrainMean, kTrainRunningMean));
}

/// Units are as wide as planes and addresses allow.
TEST(CheckBatchNorm, ChoosesTheWidthOfUnits) {
  const auto widthOf = [](const Launch &launch) {
    return launch.withView([](const LaunchView &view) {
      const Result<BatchNormLayout> layout =
          checkBatchNormTrain(view, DType::BF16, BatchNormOrder::Nchw);
      EXPECT_TRUE(layout.isOk());
      return layout.isOk() ? layout->width : 0;
    });
  };
  Launch launch = trainLaunch(); // Planes of 24 elements.
  EXPECT_EQ(widthOf(launch), 8u);
  launch.reads[kTrainResidual].address += 8;
  EXPECT_EQ(widthOf(launch), 4u);
  launch.writes[kTrainY].address += 4;
  EXPECT_EQ(widthOf(launch), 1u);
  launch = trainLaunch();
  for (Tensor *tensor :
       {&launch.reads[kTrainX], &launch.reads[kTrainResidual], &launch.writes[kTrainY]})
    tensor->sizes = {2, 3, 196};
  EXPECT_EQ(widthOf(launch), 4u);
  for (Tensor *tensor :
       {&launch.reads[kTrainX], &launch.reads[kTrainResidual], &launch.writes[kTrainY]})
    tensor->sizes = {2, 3, 49};
  EXPECT_EQ(widthOf(launch), 1u);
}

/// Rows of channels: the grid has tiles, and rows are whole vectors.
TEST(CheckBatchNorm, RefusesRowsBetweenVectors) {
  Launch good = launchOf("batch_norm_moments");
  good.kernel = "batch_norm_moments_nhwc_bf16";
  good.grid[0] = 2 * 5;
  good.reads = {{kAddress, {2, 3, 4, 72}, {}, DType::BF16}};
  good.writes = {{kAddress, {72, 5, 3}, {}, kF32}};
  const std::string kRows = "rows have to begin and end at multiples of 16 bytes";
  expectRefusals(good, {{[](Launch &l) { l.grid[0] = 5; }, kGrid},
                        {[](Launch &l) { l.reads[0].sizes = {2, 72, 4, 3}; }, kSplits},
                        {[](Launch &l) {
                           l.reads[0].sizes = {2, 3, 4, 68};
                           l.writes[0].sizes[0] = 68;
                         },
                         kRows},
                        {[](Launch &l) { l.reads[0].address += 8; }, kRows}});
}

/// The layers of ResNet-50 at batch 64: a grid fills the GPU about once, and every thread has work.
TEST(BatchNormSplits, FillTheGpu) {
  for (const auto &[channels, plane] : {std::pair<int64_t, int64_t>{64, 112 * 112},
                                        {64, 56 * 56},
                                        {256, 56 * 56},
                                        {128, 28 * 28},
                                        {512, 28 * 28},
                                        {256, 14 * 14},
                                        {1024, 14 * 14},
                                        {2048, 7 * 7}}) {
    const int64_t elements = 64 * plane, splits = batchNormSplits(channels, elements, 132),
                  step = batchNormSplitElements(elements, splits);
    SCOPED_TRACE(channels);
    EXPECT_GE(channels * splits, 500);
    EXPECT_GE(splits * step, elements);
    EXPECT_LT((splits - 1) * step, elements);
    EXPECT_EQ(step % 8, 0);
  }
  for (const auto &[channels, rows] :
       {std::pair<int64_t, int64_t>{64, 56 * 56}, {256, 56 * 56}, {128, 28 * 28}, {2048, 7 * 7}}) {
    const int64_t splits = batchNormRowSplits(channels, 8, 64 * rows, 132);
    EXPECT_GE(batchNormTiles(channels, 8) * splits, 250) << channels;
    EXPECT_LE(splits, 128);
  }
  EXPECT_EQ(batchNormRowSplits(64, 8, 100, 132), 1);
  EXPECT_EQ(batchNormSplits(3, 100, 132), 1);
  EXPECT_EQ(batchNormSplits(1, 100'000'000, 132), 528);
}

} // namespace
} // namespace cgc::test

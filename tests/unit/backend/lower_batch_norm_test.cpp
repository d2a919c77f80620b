// Tests of lower(): batch normalization in training, which kernels it becomes and which states they
// write in place.
#include "runtime/kernels/batch_norm/batch_norm.h"
#include "tests/unit/backend/lowered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::backend {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

/// The first bucket of a text.
Bucket bucketOf(const std::string &text, DeviceKind target = DeviceKind::Cuda) {
  auto plan = lowerAll(*parse(text), target);
  EXPECT_TRUE(plan) << plan.status().message();
  return plan ? plan->plan.entries[0].buckets[0] : Bucket();
}

/// The running statistics are states, which are written in place.
TEST(LowerBatchNorm, TrainIsTwoLaunches) {
  const Bucket bucket = bucketOf(R"(module @Model {
  state @w : f32[64]
  state @m role="buffer" : f32[64]
  state @v role="buffer" : f32[64]
  graph @step(%x: bf16[2,64,112,112]@cuda) {
    %w = get_attr @w : f32[64]@cuda
    %m = get_attr @m : f32[64]@cuda
    %v = get_attr @v : f32[64]@cuda
    %0, %1, %2, %3, %4 = cgc.batch_norm_train(%x, %w, none, %m, %v) {momentum=0.1, eps=1e-05} : bf16[2,64,112,112]@cuda, f32[64]@cuda, f32[64]@cuda, f32[64]@cuda, f32[64]@cuda
    output %0, state @m = %3, state @v = %4
  }
})");
  EXPECT_THAT(recordNames(bucket), ElementsAre("kernel batch_norm_moments_nchw_bf16",
                                               "kernel batch_norm_train_nchw_bf16"));
  const auto &moments = std::get<KernelLaunch>(bucket.records[0].op),
             &train = std::get<KernelLaunch>(bucket.records[1].op);
  const int64_t splits = batchNormSplits(64, 2 * 112 * 112, 132);
  EXPECT_EQ(moments.grid[0], 64 * splits);
  EXPECT_EQ(train.grid[0], 64 * splits);
  EXPECT_THAT(bucket.tensors[uint32_t(moments.writes[0])].sizes, ElementsAre(64, splits, 3));
  const auto slot = [&](TensorId id) { return bucket.tensors[uint32_t(id)].slot; };
  EXPECT_EQ(train.reads[kTrainBias], kNoTensor);
  EXPECT_EQ(train.reads[kTrainResidual], kNoTensor);
  EXPECT_EQ(slot(train.writes[kTrainNewMean]), slot(train.reads[kTrainRunningMean]));
  EXPECT_EQ(slot(train.writes[kTrainNewVar]), slot(train.reads[kTrainRunningVar]));
  EXPECT_EQ(slot(train.writes[kTrainNewVar]).buffer, BufferKind::State);
}

std::string backward(const std::string &dtype, const std::string &parameter) {
  const std::string x = dtype + "[2,3,5]@cuda", w = parameter + "[3]@cuda";
  return "graph @g(%g: " + x + ", %x: " + x + ", %w: " + w + ", %m: " + w +
         ") {\n%0, %1, %2 = cgc.batch_norm_backward(%g, %x, %w, %m, %m) {eps=1e-05} : " + x + ", " +
         w + ", " + w + "\noutput %0, %1, %2\n}";
}

TEST(LowerBatchNorm, BackwardIsTwoLaunches) {
  for (const std::string dtype : {"f32", "f16", "bf16"})
    EXPECT_THAT(recordNames(bucketOf(backward(dtype, "f32"))),
                ElementsAre("kernel batch_norm_sums_nchw_" + dtype,
                            "kernel batch_norm_backward_nchw_" + dtype));
}

std::string masked(const std::string &dtype) {
  const std::string x = dtype + "[2,3,5]@cuda", m = (dtype == "f64" ? dtype : "f32") + "[3]@cuda";
  return "graph @g(%g: " + x + ", %h: " + x + ", %x: " + x + ", %y: " + x + ", %m: " + m +
         ") {\n%0, %1 = cgc.batch_norm_backward(%g, %x, none, %m, %m, none, %y, %h) {eps=1e-05} "
         ": " +
         x + ", " + x + "\noutput %0, %1\n}";
}

/// The first launch writes the masked gradient, which the second reads.
TEST(LowerBatchNorm, TheGradientOfASumIsPartOfTheLaunches) {
  const Bucket bucket = bucketOf(masked("f16"));
  ASSERT_THAT(recordNames(bucket), ElementsAre("kernel batch_norm_sums_nchw_f16",
                                               "kernel batch_norm_backward_nchw_f16"));
  const auto launch = [&](size_t i) { return std::get<KernelLaunch>(bucket.records[i].op); };
  EXPECT_EQ(launch(0).writes[1], launch(1).reads[0]);
  EXPECT_THAT(recordNames(bucketOf(masked("f64"))),
              ElementsAre("aten::add.out", "aten::threshold_backward.grad_input",
                          "aten::native_batch_norm_backward"));
}

TEST(LowerBatchNorm, OtherDTypesStayWithLibTorch) {
  for (const auto &[dtype, parameter] : {std::pair{"f64", "f64"}, {"bf16", "bf16"}})
    EXPECT_THAT(recordNames(bucketOf(backward(dtype, parameter))),
                Contains(HasSubstr("aten::native_batch_norm_backward")));
}

std::string fused(const std::string &dtype) {
  const std::string x = dtype + "[2,3,5]@cuda", c = (dtype == "f64" ? dtype : "f32") + "[3]@cuda";
  return "graph @g(%x: " + x + ", %r: " + x + ", %g: " + x + ", %b: " + c +
         ") {\n%0, %1, %2 = cgc.batch_norm_train(%x, none, %b, none, none, %r) {momentum=0.1, "
         "eps=1e-05, relu=true} : " +
         x + ", " + c + ", " + c +
         "\n%3 = cgc.batch_norm_backward(%g, %x, none, %1, %2, %b) {eps=1e-05, relu=true} : " + x +
         "\noutput %0, %3\n}";
}

TEST(LowerBatchNorm, ResidualAndReluArePartOfTheLaunches) {
  const Bucket bucket = bucketOf(fused("f16"));
  EXPECT_THAT(recordNames(bucket),
              ElementsAre("kernel batch_norm_moments_nchw_f16", "kernel batch_norm_train_nchw_f16",
                          "kernel batch_norm_sums_nchw_f16",
                          "kernel batch_norm_backward_nchw_f16"));
  const auto launch = [&](size_t i) { return std::get<KernelLaunch>(bucket.records[i].op); };
  EXPECT_NE(launch(1).reads[kTrainResidual], kNoTensor);
  for (const size_t i : {1, 2, 3})
    EXPECT_THAT(launch(i).ints, ElementsAre(1));
  EXPECT_THAT(recordNames(bucketOf(fused("f64"))),
              ElementsAre("aten::_native_batch_norm_legit.no_stats", "aten::add.out",
                          "aten::clamp_min.out", "aten::_native_batch_norm_legit.no_stats",
                          "aten::threshold_backward.grad_input",
                          "aten::native_batch_norm_backward"));
}

/// A gradient that is expanded is copied. A matrix has rows of channels, which have to be whole
/// vectors.
TEST(LowerBatchNorm, TakesPlanesAndRows) {
  EXPECT_THAT(
      recordNames(bucketOf(R"(graph @g(%s: f32[]@cuda, %x: f32[2,3,5]@cuda, %m: f32[3]@cuda) {
    %0 = aten.expand(%s) {size=[2, 3, 5]} : f32[2,3,5][0,0,0]@cuda
    %1 = cgc.batch_norm_backward(%0, %x, none, %m, %m) {eps=1e-05} : f32[2,3,5]@cuda
    output %1
  })")),
      ElementsAre("kernel copy", "kernel batch_norm_sums_nchw_f32",
                  "kernel batch_norm_backward_nchw_f32"));
  const auto train = [](const std::string &sizes, const std::string &channels,
                        const std::string &more) {
    const std::string c = "f32[" + channels + "]@cuda", x = "f32[" + sizes + "]@cuda";
    return recordNames(bucketOf("graph @g(%x: " + x +
                                ") {\n%0, %1, %2 = cgc.batch_norm_train(%x, none, none, none, "
                                "none) {momentum=0.1, eps=1e-05" +
                                more + "} : " + x + ", " + c + ", " + c + "\noutput %0\n}"));
  };
  const auto rows =
      ElementsAre("kernel batch_norm_moments_nhwc_f32", "kernel batch_norm_train_nhwc_f32");
  EXPECT_THAT(train("5,8", "8", ""), rows);
  EXPECT_THAT(train("5,3,8", "8", ", channels_last=true"), rows);
  for (const auto &names : {train("5,6", "6", ""), train("5,3,6", "6", ", channels_last=true")})
    EXPECT_THAT(names, ElementsAre("aten::_native_batch_norm_legit.no_stats"));
}

} // namespace
} // namespace cgc::backend

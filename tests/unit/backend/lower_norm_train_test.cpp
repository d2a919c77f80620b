// Tests of lower(): layer norms and sums of a training step, as kernels of cgc's own or calls of
// LibTorch.
#include "runtime/kernels/rowwise/column_sums.h"
#include "runtime/kernels/rowwise/layer_norm_train.h"
#include "tests/unit/backend/lowered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::backend {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// The bucket of a graph on cuda with these inputs and lines.
Bucket cudaBucket(const std::string &inputs, const std::string &lines) {
  auto plan = lowerAll(*parse("graph @g(" + inputs + ") {\n" + lines + "\n}"), DeviceKind::Cuda);
  EXPECT_TRUE(plan) << plan.status().message();
  return plan ? plan->plan.entries[0].buckets[0] : Bucket();
}

std::string type(const std::string &dtype, const std::string &sizes) {
  return dtype + "[" + sizes + "]@cuda";
}

TEST(LowerNormTrain, StatisticsAreOneKernel) {
  for (const std::string dtype : {"f32", "f16", "bf16"})
    for (const auto &[columns, most] :
         {std::pair("4", "1024"), {"1024", "1024"}, {"1028", "2048"}}) {
      const std::string sizes = std::string("2,5,") + columns;
      const Bucket bucket = cudaBucket(
          "%x: " + type("f32", sizes) + ", %w: " + type("f32", columns),
          "%0, %1, %2 = cgc.layer_norm_statistics(%x, %w, none) {normalized_shape=[" +
              std::string(columns) + "], eps=0.5, dtype=" + dtype + "} : " + type(dtype, sizes) +
              ", " + type("f32", "2,5,1") + ", " + type("f32", "2,5,1") + "\noutput %0, %1, %2");
      ASSERT_THAT(recordNames(bucket),
                  ElementsAre("kernel layer_norm_statistics_" + dtype + "_" + most));
      const KernelLaunch &launch = launchOf(bucket, 0);
      EXPECT_THAT(launch.ints, ElementsAre(10, std::stoll(columns)));
      EXPECT_THAT(launch.floats, ElementsAre(0.5));
      EXPECT_EQ(launch.grid[0], 3u);
      EXPECT_THAT(launch.reads, ElementsAre(Not(kNoTensor), Not(kNoTensor), kNoTensor, kNoTensor));
      EXPECT_EQ(launch.writes[3], kNoTensor);
    }
}

TEST(LowerNormTrain, StatisticsAddAnAddendInOneKernel) {
  for (const std::string addend : {"f32", "bf16"}) {
    const Bucket bucket = cudaBucket(
        "%x: f32[3,8]@cuda, %y: " + type(addend, "3,8"),
        R"(%0, %1, %2, %3 = cgc.layer_norm_statistics(%x, none, none, %y) {normalized_shape=[8], eps=1e-05, dtype=bf16} : bf16[3,8]@cuda, f32[3,1]@cuda, f32[3,1]@cuda, f32[3,8]@cuda
        output %0, %1, %2, %3)");
    ASSERT_THAT(recordNames(bucket), ElementsAre("kernel layer_norm_statistics_bf16_1024"));
    EXPECT_NE(launchOf(bucket, 0).reads[3], kNoTensor);
    EXPECT_NE(launchOf(bucket, 0).writes[3], kNoTensor);
  }
}

TEST(LowerNormTrain, GradientsAreTwoKernels) {
  const Bucket bucket = cudaBucket(
      "%g: bf16[5000,768]@cuda, %x: f32[5000,768]@cuda, %s: f32[5000,1]@cuda, %w: f32[768]@cuda, "
      "%r: f32[5000,768]@cuda",
      R"(%0, %1, %2, %3 = cgc.layer_norm_backward(%g, %x, %s, %s, %w, %w, %r) {normalized_shape=[768], copy=bf16} : f32[5000,768]@cuda, f32[768]@cuda, f32[768]@cuda, bf16[5000,768]@cuda
      output %0, %1, %2, %3)");
  ASSERT_THAT(recordNames(bucket), ElementsAre("kernel layer_norm_backward_bf16_1024",
                                               "kernel layer_norm_parameters_f32"));
  const KernelLaunch &rows = launchOf(bucket, 0), &parameters = launchOf(bucket, 1);
  // A CTA for each SM, not one for each eight rows.
  EXPECT_EQ(rows.grid[0], LowerOptions(DeviceKind::Cuda).gpu().multiprocessors);
  EXPECT_EQ(rows.block[0], normBackwardThreads(768));
  EXPECT_EQ(rows.sharedBytes, normBackwardSharedBytes(768));
  EXPECT_THAT(rows.ints, ElementsAre(5000, 768));
  EXPECT_THAT(rows.reads, Each(Not(kNoTensor)));
  EXPECT_THAT(rows.writes, Each(Not(kNoTensor)));
  EXPECT_THAT(parameters.ints, ElementsAre(rows.grid[0], 768));
  EXPECT_EQ(parameters.grid[0], 768u / kNormParameterColumns);
  EXPECT_THAT(parameters.reads, ElementsAre(rows.writes[2]));
  EXPECT_THAT(parameters.writes, Each(Not(kNoTensor)));
}

/// Only the gradients of the parameters that there are.
TEST(LowerNormTrain, GradientsOfLess) {
  const std::string inputs = "%g: f32[2,1028]@cuda, %x: f32[2,1028]@cuda, %s: f32[2,1]@cuda, "
                             "%w: f32[1028]@cuda";
  const Bucket none = cudaBucket(
      inputs,
      R"(%0 = cgc.layer_norm_backward(%g, %x, %s, %s, none, none) {normalized_shape=[1028]} : f32[2,1028]@cuda
      output %0)");
  ASSERT_THAT(recordNames(none), ElementsAre("kernel layer_norm_backward_f32_2048"));
  EXPECT_EQ(launchOf(none, 0).grid[0], 1u);
  EXPECT_THAT(launchOf(none, 0).reads, Contains(kNoTensor).Times(2));
  EXPECT_EQ(launchOf(none, 0).writes[1], kNoTensor);
  const Bucket bias = cudaBucket(
      inputs,
      R"(%0, %1 = cgc.layer_norm_backward(%g, %x, %s, %s, none, %w) {normalized_shape=[1028]} : f32[2,1028]@cuda, f32[1028]@cuda
      output %0, %1)");
  ASSERT_THAT(recordNames(bias), ElementsAre("kernel layer_norm_backward_f32_2048",
                                             "kernel layer_norm_parameters_f32"));
  EXPECT_EQ(launchOf(bias, 1).grid[0], 33u);
  EXPECT_THAT(launchOf(bias, 1).writes, ElementsAre(kNoTensor, Not(kNoTensor)));
}

/// f64, 16-bit inputs, rows that no kernel takes, and several normalized dimensions.
TEST(LowerNormTrain, OtherRowsAreLibTorchs) {
  struct Rows {
    std::string dtype, statistics, sizes, shape, rows;
  };
  for (const Rows &r : {Rows{"f64", "f64", "3,8", "8", "3,1"},
                        {"f16", "f32", "3,8", "8", "3,1"},
                        {"f32", "f32", "3,2052", "2052", "3,1"},
                        {"f32", "f32", "3,6", "6", "3,1"},
                        {"f32", "f32", "3,4,8", "4,8", "3,1,1"}}) {
    const std::string x = type(r.dtype, r.sizes), s = type(r.statistics, r.rows),
                      shape = "{normalized_shape=[" + r.shape + "]";
    const Bucket bucket = cudaBucket(
        "%x: " + x + ", %y: " + x,
        "%0, %1, %2, %3 = cgc.layer_norm_statistics(%x, none, none, %y) " + shape +
            ", eps=1e-05} : " + x + ", " + s + ", " + s + ", " + x +
            "\n%4, %5 = cgc.layer_norm_backward(%0, %3, %1, %2, none, none, %x) " + shape +
            ", copy=bf16} : " + x + ", " + type("bf16", r.sizes) + "\noutput %4, %5");
    const auto names = recordNames(bucket);
    EXPECT_THAT(names, Contains("aten::native_layer_norm")) << x;
    EXPECT_THAT(names, Contains("aten::native_layer_norm_backward")) << x;
    EXPECT_THAT(names, Not(Contains(HasSubstr("kernel layer_norm")))) << x;
    EXPECT_THAT(names.back(), HasSubstr("copy")) << x << ": with the residual";
  }
}

/// The same call with strided rows, and with a copy in another dtype than the gradient's.
TEST(LowerNormTrain, StridedRowsAreLibTorchs) {
  const Bucket bucket = cudaBucket("%v: f32[8,3]@cuda, %x: f32[3,8]@cuda, %s: f32[3,1]@cuda",
                                   R"(%t = aten.transpose(%v) {dim0=0, dim1=1} : f32[3,8][1,3]@cuda
      %0, %1, %2 = cgc.layer_norm_statistics(%t, none, none) {normalized_shape=[8], eps=1e-05} : f32[3,8]@cuda, f32[3,1]@cuda, f32[3,1]@cuda
      %3, %4, %5, %6 = cgc.layer_norm_statistics(%x, none, none, %t) {normalized_shape=[8], eps=1e-05} : f32[3,8]@cuda, f32[3,1]@cuda, f32[3,1]@cuda, f32[3,8]@cuda
      %7 = cgc.layer_norm_backward(%t, %x, %s, %s, none, none) {normalized_shape=[8]} : f32[3,8]@cuda
      %8, %9 = cgc.layer_norm_backward(%x, %x, %s, %s, none, none) {normalized_shape=[8], copy=bf16} : f32[3,8]@cuda, bf16[3,8]@cuda
      output %0, %3, %6, %7, %8, %9)");
  EXPECT_THAT(recordNames(bucket), ElementsAre("kernel copy", "aten::native_layer_norm",
                                               "kernel elementwise_f32", "aten::native_layer_norm",
                                               "kernel copy", "aten::native_layer_norm_backward",
                                               "aten::native_layer_norm_backward", "kernel copy"));
}

TEST(LowerSum, SixteenBitRowsInF32AreOneKernel) {
  for (const std::string dtype : {"f16", "bf16"}) {
    const Bucket bucket = cudaBucket("%x: " + type(dtype, "2,5,24"),
                                     R"(%0 = aten.sum(%x) {dim=[0, 1], dtype=f32} : f32[24]@cuda
                   %1 = aten.sum(%x) {dim=[-2, -3], keepdim=true, dtype=f32} : f32[1,1,24]@cuda
                   output %0, %1)");
    ASSERT_THAT(recordNames(bucket), Each("kernel column_sums_" + dtype));
    EXPECT_THAT(launchOf(bucket, 0).ints, ElementsAre(10, 24));
    EXPECT_EQ(launchOf(bucket, 0).grid[0], 2u);
    EXPECT_EQ(launchOf(bucket, 0).block[0], kColumnSumsThreads);
  }
}

/// Sums of f32, in 16 bits, of strided rows, of rows that are no vectors, over other dimensions or
/// all of them.
TEST(LowerSum, OtherSumsAreKernelsOfRowsAndColumns) {
  const Bucket bucket = cudaBucket(
      "%x: f32[5,24]@cuda, %y: bf16[5,24]@cuda, %z: bf16[24,5]@cuda, %a: bf16[5,12]@cuda, "
      "%v: bf16[24]@cuda",
      R"(%0 = aten.sum(%x) {dim=[0]} : f32[24]@cuda
      %1 = aten.sum(%y) {dim=[0]} : bf16[24]@cuda
      %2 = aten.transpose(%z) {dim0=0, dim1=1} : bf16[5,24][1,5]@cuda
      %3 = aten.sum(%2) {dim=[0], dtype=f32} : f32[24]@cuda
      %4 = aten.sum(%a) {dim=[0], dtype=f32} : f32[12]@cuda
      %5 = aten.sum(%y) {dim=[1], dtype=f32} : f32[5]@cuda
      %6 = aten.sum(%y) {dtype=f32} : f32[]@cuda
      %7 = aten.sum(%v) {dim=[0], dtype=f32} : f32[]@cuda
      output %0, %1, %3, %4, %5, %6, %7)");
  EXPECT_THAT(recordNames(bucket),
              ElementsAre("kernel sum_rows_f32", "kernel sum_rows_bf16", "kernel copy",
                          "kernel sum_rows_bf16", "kernel sum_rows_bf16", "kernel row_sums_bf16",
                          "kernel row_sums_bf16", "kernel row_sums_bf16"));
}

TEST(LowerSum, OfNothingAndOfIntegersIsLibTorchs) {
  const Bucket bucket = cudaBucket("%e: bf16[0,24]@cuda, %i: i64[5]@cuda",
                                   R"(%0 = aten.sum(%e) {dim=[0], dtype=f32} : f32[24]@cuda
      %1 = aten.sum(%i) : i64[]@cuda
      output %0, %1)");
  EXPECT_THAT(recordNames(bucket), Each("aten::sum.IntList_out"));
}

TEST(LowerSum, IsLibTorchsOnTheCpu) {
  const auto plan = lowerAll(*parse(R"(graph @g(%x: bf16[5,24]) {
    %0 = aten.sum(%x) {dim=[0], dtype=f32} : f32[24]
    output %0
  })"));
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(recordNames(plan->plan.entries[0].buckets[0]), ElementsAre("aten::sum.IntList_out"));
}

} // namespace
} // namespace cgc::backend

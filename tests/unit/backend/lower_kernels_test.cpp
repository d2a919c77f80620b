// Tests of lower(): the kernels and library calls that ops become on cuda.
#include "runtime/kernels/pointwise/activation.h"
#include "runtime/kernels/pointwise/compare.h"
#include "runtime/kernels/pointwise/elementwise.h"
#include "runtime/plan/gemm_call.h"
#include "tests/unit/backend/lowered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace cgc::backend {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

TEST(Lower, GemmsOfManyF32RowsRoundToTf32OnlyIfTheyMay) {
  auto module = parse(R"(graph @g(%x: f32[17,8]@cuda, %w: f32[5,8]@cuda) {
    %0 = aten.linear(%x, %w) : f32[17,5]@cuda
    output %0
  })");
  auto few = parse(R"(graph @g(%x: f32[16,8]@cuda, %w: f32[5,8]@cuda) {
    %0 = aten.linear(%x, %w) : f32[16,5]@cuda
    output %0
  })");
  auto half = parse(R"(graph @g(%x: f16[17,8]@cuda, %w: f16[5,8]@cuda) {
    %0 = aten.linear(%x, %w) : f16[17,5]@cuda
    output %0
  })");
  LowerOptions options = DeviceKind::Cuda;
  const auto rounds = [&](const ir::Module &of) {
    auto plan = lowerAll(of, options);
    EXPECT_TRUE(plan) << plan.status().message();
    const Bucket &bucket = plan->plan.entries[0].buckets[0];
    return gemmCall(std::get<LibraryCall>(bucket.records[0].op), bucket.tensors)->tf32;
  };
  EXPECT_FALSE(rounds(*module));
  options.tf32 = true;
  EXPECT_TRUE(rounds(*module));
  EXPECT_FALSE(rounds(*few));
  EXPECT_FALSE(rounds(*half));
}

TEST(Lower, DropoutDrawsTheNumbersOfItsStream) {
  const auto module = parse(R"(graph @g(%x: f32[4]@cuda, %s: i64[]@cuda, %o: i64[]@cuda) {
    %0 = cgc.dropout(%x, %s, %o) {p=0.5, stream=3} : f32[4]@cuda
    output %0
  })");
  const auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(launchOf(plan->plan.entries[0].buckets[0], 0).ints, ElementsAre(3));
}

TEST(Lower, LayerNormIsAKernelOnCudaOnly) {
  auto module = parse(R"(graph @g(%x: f16[2,3,8]@cuda, %w: f16[8]@cuda) {
    %0 = aten.layer_norm(%x, %w) {normalized_shape=[8]} : f16[2,3,8]@cuda
    %1 = aten.transpose(%0) {dim0=1, dim1=2} : f16[2,8,3][24,1,8]@cuda
    %2 = aten.layer_norm(%1) {normalized_shape=[3]} : f16[2,8,3]@cuda
    output %2
  })");
  auto cuda = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(cuda) << cuda.status().message();
  // The input of the second layer norm is strided.
  const Bucket &bucket = cuda->plan.entries[0].buckets[0];
  EXPECT_THAT(recordNames(bucket),
              ElementsAre("kernel layer_norm_f16", "kernel copy", "kernel layer_norm_f16"));
  const auto &launch = std::get<KernelLaunch>(bucket.records[0].op);
  EXPECT_EQ(launch.grid[0], 2u); // Four rows per block.
  EXPECT_THAT(launch.ints, ElementsAre(6, 8));
  EXPECT_EQ(launch.reads[2], kNoTensor);
}

/// The names of the records of one graph for cuda.
std::vector<std::string> cudaRecords(const std::string &text) {
  auto plan = lowerAll(*parse(text), DeviceKind::Cuda);
  EXPECT_TRUE(plan) << plan.status().message();
  return plan ? recordNames(plan->plan.entries[0].buckets[0]) : std::vector<std::string>();
}

TEST(Lower, RowsAreCopiedForLayerNormOnlyIfItsKernelTakesAllElse) {
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: f16[2,3,8]@cuda, %w: f16[3,2]@cuda, %d: f64[2,3,8]@cuda) {
    %0 = aten.transpose(%x) {dim0=1, dim1=2} : f16[2,8,3][24,1,8]@cuda
    %1 = aten.select(%w) {dim=1, index=0} : f16[3][2]@cuda
    %2 = aten.layer_norm(%0, %1) {normalized_shape=[3]} : f16[2,8,3]@cuda
    %3 = aten.transpose(%d) {dim0=1, dim1=2} : f64[2,8,3][24,1,8]@cuda
    %4 = aten.layer_norm(%3) {normalized_shape=[3]} : f64[2,8,3]@cuda
    output %2, %4
  })"),
              ElementsAre("aten::layer_norm", "aten::layer_norm"));
}

TEST(Lower, PointwiseOpsAreOneKernelOnCuda) {
  auto module = parse(R"(graph @g(%x: f16[2,3,8]@cuda, %b: f16[8]@cuda, %i: i64[8]@cuda) {
    %0 = aten.add(%x, %b) : f16[2,3,8]@cuda
    %1 = aten.gelu(%0) {approximate="tanh"} : f16[2,3,8]@cuda
    %2 = aten.sub(1, %1) : f16[2,3,8]@cuda
    %3 = aten.rsub(%2, 2.5) : f16[2,3,8]@cuda
    %4 = aten.add(%3, 3) {alpha=2} : f16[2,3,8]@cuda
    %5 = cgc.quick_gelu(%4) : f16[2,3,8]@cuda
    %6 = aten.div(%5, %x) : f16[2,3,8]@cuda
    %7 = aten.transpose(%6) {dim0=1, dim1=2} : f16[2,8,3][24,1,8]@cuda
    %8 = aten.silu(%7) : f16[2,8,3]@cuda
    %9 = aten.pow(%8, 2) : f16[2,8,3]@cuda
    output %9
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  using enum ElementwiseOp;
  const std::pair<ElementwiseOp, double> expected[] = {
      {Add, 0},       {GeluTanh, 0}, {ReverseSub, 1}, {ReverseSub, 2.5}, {Add, 6},
      {QuickGelu, 0}, {Div, 0},      {Silu, 0},       {Pow, 2}};
  ASSERT_EQ(bucket.records.size(), std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ(recordName(bucket.records[i]), "kernel elementwise_f16");
    const auto &launch = std::get<KernelLaunch>(bucket.records[i].op);
    EXPECT_THAT(launch.ints, ElementsAre(int64_t(expected[i].first))) << i;
    EXPECT_THAT(launch.floats, ElementsAre(expected[i].second)) << i;
    EXPECT_EQ(launch.reads[1] == kNoTensor, i != 0 && i != 6) << i;
  }
}

TEST(Lower, PointwiseOpsThatNoKernelComputesStayWithLibTorch) {
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: f32[2,4]@cuda, %y: f32[2,4]@cuda, %i: i64[4]@cuda) {
    %0 = aten.add(%x, %y) {alpha=2} : f32[2,4]@cuda
    %1 = aten.add(%i, 9007199254740993) : i64[4]@cuda
    %2 = aten.add(%i, 3) {alpha=2} : i64[4]@cuda
    %3 = aten.div(%x, 2) {rounding_mode="floor"} : f32[2,4]@cuda
    %4 = aten.pow(2, %x) : f32[2,4]@cuda
    %5 = aten.log2(%x) : f32[2,4]@cuda
    %6 = aten.bitwise_and(%i, %i) : i64[4]@cuda
    %7 = aten.rsub(%x, 3) {alpha=2} : f32[2,4]@cuda
    output %0, %1, %2, %3, %4, %5, %6, %7
  })"),
              ElementsAre("aten::add.out", "aten::add.out", "aten::add.out", "aten::div.out_mode",
                          "aten::pow.Scalar_out", "aten::log2.out", "aten::bitwise_and.Tensor_out",
                          "aten::sub.out"));
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: f32[0,4]@cuda, %y: f64[4]@cuda) {
    %0 = aten.neg(%x) : f32[0,4]@cuda
    %1 = aten.neg(%y) : f64[4]@cuda
    output %0, %1
  })"),
              ElementsAre("aten::neg.out", "aten::neg.out"));
}

TEST(Lower, ArithmeticOfIntegersIsOneKernelOnCuda) {
  EXPECT_THAT(cudaRecords(R"(graph @g(%i: i64[2,4]@cuda, %j: i64[4]@cuda) {
    %0 = aten.add(%i, 1) : i64[2,4]@cuda
    %1 = aten.sub(5, %0) : i64[2,4]@cuda
    %2 = aten.mul(%1, %j) : i64[2,4]@cuda
    %3 = aten.neg(%2) : i64[2,4]@cuda
    %4 = aten.abs(%3) : i64[2,4]@cuda
    %5 = aten.maximum(%4, %j) : i64[2,4]@cuda
    %6 = aten.clamp(%5, 0, 7) : i64[2,4]@cuda
    output %6
  })"),
              testing::AllOf(testing::SizeIs(8), testing::Each("kernel elementwise_i64")));
}

/// Each operand is converted to the dtype of the result, unless the kernel does not take the rest.
TEST(Lower, PointwiseOpsOfOtherDTypesConvertTheirOperandsOnCuda) {
  const std::string inputs =
      "%x: f32[2,4]@cuda, %h: bf16[2,4]@cuda, %i: i64[4]@cuda, %d: f64[4]@cuda";
  EXPECT_THAT(cudaRecords("graph @g(" + inputs + R"() {
    %0 = aten.add(%x, %i) : f32[2,4]@cuda
    output %0
  })"),
              ElementsAre("kernel copy", "kernel elementwise_f32"));
  EXPECT_THAT(cudaRecords("graph @g(" + inputs + R"() {
    %0 = aten.div(%h, %x) : f32[2,4]@cuda
    %1 = aten.div(%i, 2) : f32[4]@cuda
    %2 = aten.add(%x, %d) : f64[2,4]@cuda
    output %0, %1, %2
  })"),
              ElementsAre("kernel copy", "kernel elementwise_f32", "kernel copy",
                          "kernel elementwise_f32", "aten::add.out"));
}

TEST(Lower, ClampsBetweenNumbersAreKernelsOnCuda) {
  auto module = parse(R"(graph @g(%x: f32[2,4]@cuda, %z: f32[4]@cuda) {
    %0 = aten.clamp(%x, -1.5) : f32[2,4]@cuda
    %1 = aten.clamp(%0, none, 2) : f32[2,4]@cuda
    %2 = aten.clamp(%1, 0, 1) : f32[2,4]@cuda
    %3 = aten.clamp(%2, %z) : f32[2,4]@cuda
    output %3
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  ASSERT_EQ(bucket.records.size(), 5u);
  using enum ElementwiseOp;
  const std::pair<ElementwiseOp, double> expected[] = {
      {Maximum, -1.5}, {Minimum, 2}, {Maximum, 0}, {Minimum, 1}};
  for (size_t i = 0; i < std::size(expected); ++i) {
    const auto &launch = std::get<KernelLaunch>(bucket.records[i].op);
    EXPECT_THAT(launch.ints, ElementsAre(int64_t(expected[i].first))) << i;
    EXPECT_THAT(launch.floats, ElementsAre(expected[i].second)) << i;
  }
  EXPECT_EQ(recordName(bucket.records[4]), "aten::clamp.Tensor_out");
}

TEST(Lower, LogicOfBoolsAndTestsForNumbersAreKernelsOnCuda) {
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: f16[2,4]@cuda, %b: bool[4]@cuda) {
    %0 = aten.isfinite(%x) : bool[2,4]@cuda
    %1 = aten.logical_not(%0) : bool[2,4]@cuda
    %2 = aten.logical_or(%1, %b) : bool[2,4]@cuda
    %3 = aten.logical_and(%2, %b) : bool[2,4]@cuda
    output %3
  })"),
              ElementsAre("kernel elementwise_f16", "kernel compare_f16", "kernel compare_bool",
                          "kernel where", "kernel where"));
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: f16[2,4]@cuda, %b: bool[4]@cuda, %d: f64[4]@cuda) {
    %0 = aten.isfinite(%d) : bool[4]@cuda
    %1 = aten.logical_not(%x) : bool[2,4]@cuda
    %2 = aten.logical_or(%1, %d) : bool[2,4]@cuda
    output %0, %2
  })"),
              ElementsAre("aten::isfinite", "aten::logical_not.out", "aten::logical_or.out"));
}

TEST(Lower, ASoftplusIsAKernelWithItsDefaultsOnCuda) {
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: f32[4]@cuda) {
    %0 = aten.softplus(%x) : f32[4]@cuda
    %1 = aten.softplus(%x) {beta=2} : f32[4]@cuda
    %2 = aten.softplus(%x) {threshold=1} : f32[4]@cuda
    output %0, %1, %2
  })"),
              ElementsAre("kernel elementwise_f32", "aten::softplus.out", "aten::softplus.out"));
}

TEST(Lower, ComparisonsAreOneKernelOnCuda) {
  auto module =
      parse(R"(graph @g(%x: f16[2,8]@cuda, %y: f16[8]@cuda, %i: i64[3,77]@cuda, %b: bool[4]@cuda) {
    %0 = aten.eq(%i, 7) : bool[3,77]@cuda
    %1 = aten.ne(%x, %y) : bool[2,8]@cuda
    %2 = aten.lt(%x, 1.5) : bool[2,8]@cuda
    %3 = aten.lt(1.5, %x) : bool[2,8]@cuda
    %4 = aten.le(2, %x) : bool[2,8]@cuda
    %5 = aten.gt(2, %x) : bool[2,8]@cuda
    %6 = aten.ge(2, %x) : bool[2,8]@cuda
    %7 = aten.eq(2, %x) : bool[2,8]@cuda
    %8 = aten.bitwise_not(%b) : bool[4]@cuda
    %9 = aten.eq(%b, true) : bool[4]@cuda
    output %0, %1, %2, %3, %4, %5, %6, %7, %8, %9
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  using enum CompareOp;
  const std::tuple<std::string, CompareOp, double> expected[] = {
      {"i64", Eq, 7}, {"f16", Ne, 0}, {"f16", Lt, 1.5}, {"f16", Gt, 1.5}, {"f16", Ge, 2},
      {"f16", Lt, 2}, {"f16", Le, 2}, {"f16", Eq, 2},   {"bool", Eq, 0},  {"bool", Eq, 1}};
  ASSERT_EQ(bucket.records.size(), std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) {
    const auto &[dtype, op, number] = expected[i];
    EXPECT_EQ(recordName(bucket.records[i]), "kernel compare_" + dtype) << i;
    const auto &launch = std::get<KernelLaunch>(bucket.records[i].op);
    EXPECT_THAT(launch.ints, ElementsAre(int64_t(op))) << i;
    EXPECT_THAT(launch.floats, ElementsAre(number)) << i;
    EXPECT_EQ(launch.reads[1] == kNoTensor, i != 1) << i;
  }
}

TEST(Lower, ComparisonsThatNoKernelMakesStayWithLibTorch) {
  EXPECT_THAT(
      cudaRecords(R"(graph @g(%x: f32[4]@cuda, %h: f16[4]@cuda, %i: i64[4]@cuda, %b: bool[4]@cuda,
                              %u: u8[4]@cuda, %e: i64[0]@cuda) {
    %0 = aten.eq(%i, 0.5) : bool[4]@cuda
    %1 = aten.eq(%i, 1.0) : bool[4]@cuda
    %2 = aten.eq(%i, 9007199254740993) : bool[4]@cuda
    %3 = aten.eq(%b, 2) : bool[4]@cuda
    %4 = aten.eq(%x, %h) : bool[4]@cuda
    %5 = aten.eq(%x, %i) : bool[4]@cuda
    %6 = aten.eq(%u, 1) : bool[4]@cuda
    %7 = aten.eq(%e, 1) : bool[0]@cuda
    output %0, %1, %2, %3, %4, %5, %6, %7
  })"),
      testing::AllOf(testing::SizeIs(8), testing::Each("aten::eq.Tensor_out")));
  EXPECT_THAT(cudaRecords(R"(graph @g(%i: i64[4]@cuda, %b: bool[4]@cuda) {
    %0 = aten.bitwise_not(%i) : i64[4]@cuda
    %1 = aten.bitwise_and(%i, %i) : i64[4]@cuda
    %2 = aten.bitwise_or(%b, %i) : i64[4]@cuda
    %3 = aten.bitwise_or(%b, true) : bool[4]@cuda
    output %0, %1, %2, %3
  })"),
              ElementsAre("aten::bitwise_not.out", "aten::bitwise_and.Tensor_out",
                          "aten::bitwise_or.Tensor_out", "aten::bitwise_or.Tensor_out"));
}

TEST(Lower, ChoicesAndFillsAreOneKernelOnCuda) {
  auto module =
      parse(R"(graph @g(%c: bool[3,1]@cuda, %x: f16[3,2]@cuda, %z: f16[2]@cuda, %v: f16[]@cuda) {
    %0 = aten.where(%c, %x, %z) : f16[3,2]@cuda
    %1 = aten.where(%c, %x, -1.5) : f16[3,2]@cuda
    %2 = aten.where(%c, 0.25, %x) : f16[3,2]@cuda
    %3 = aten.masked_fill(%x, %c, -inf) : f16[3,2]@cuda
    %4 = aten.masked_fill(%x, %c, %v) : f16[3,2]@cuda
    %5 = aten.full() {size=[2,5], fill_value=3, dtype=i64} : i64[2,5]@cuda
    %6 = aten.full_like(%x) {fill_value=-inf} : f16[3,2]@cuda
    %7 = aten.bitwise_and(%c, %c) : bool[3,1]@cuda
    %8 = aten.bitwise_or(%c, %c) : bool[3,1]@cuda
    output %0, %1, %2, %3, %4, %5, %6, %7, %8
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  EXPECT_THAT(recordNames(bucket),
              testing::AllOf(testing::SizeIs(9), testing::Each("kernel where")));
  // The inputs that the record reads, of which some are absent, and its numbers.
  struct Row {
    int condition, x, z;
    double numbers[2];
  };
  const Row rows[] = {{0, 1, 2, {0, 0}},
                      {0, 1, -1, {0, -1.5}},
                      {0, -1, 1, {0.25, 0}},
                      {0, -1, 1, {-INFINITY, 0}},
                      {0, 3, 1, {0, 0}},
                      {-1, -1, -1, {3, 0}},
                      {-1, -1, -1, {-INFINITY, 0}},
                      {0, 0, -1, {0, 0}},
                      {0, -1, 0, {1, 0}}};
  for (size_t i = 0; i < std::size(rows); ++i) {
    const auto &launch = std::get<KernelLaunch>(bucket.records[i].op);
    const int inputs[] = {rows[i].condition, rows[i].x, rows[i].z};
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(launch.reads[k] == kNoTensor, inputs[k] < 0) << i;
      if (inputs[k] >= 0 && launch.reads[k] != kNoTensor) {
        EXPECT_EQ(bucket.tensors[static_cast<uint32_t>(launch.reads[k])].slot,
                  (Slot{BufferKind::Input, uint32_t(inputs[k]), 0}))
            << i;
      }
    }
    EXPECT_THAT(launch.floats, testing::ElementsAreArray(rows[i].numbers)) << i;
  }
}

TEST(Lower, ChoicesBetweenDTypesAndFillsThatRoundStayWithLibTorch) {
  EXPECT_THAT(
      cudaRecords(R"(graph @g(%c: bool[2]@cuda, %x: f16[2]@cuda, %i: i64[2]@cuda, %v: f32[]@cuda) {
    %0 = aten.where(%c, %x, %i) : f16[2]@cuda
    %1 = aten.where(%c, %i, 0.5) : f32[2]@cuda
    %2 = aten.masked_fill(%x, %c, %v) : f16[2]@cuda
    %3 = aten.full() {size=[2], fill_value=0.5, dtype=i64} : i64[2]@cuda
    %4 = aten.full() {size=[2], fill_value=9007199254740993} : i64[2]@cuda
    output %0, %1, %2, %3, %4
  })"),
      ElementsAre("aten::where.self_out", "kernel where", "aten::where.self_out", "kernel copy",
                  "kernel where", "aten::fill_.Scalar", "aten::fill_.Scalar"));
}

/// As LibTorch's, which counts in double for f32.
TEST(Lower, AnArangeOfFloatsOnCudaIsAWeightRoundedOnce) {
  const auto plan = lowerForHopper(
      "%x: f32[1]@cuda", "%0 = aten.arange() {start=0, end=2, step=0.1} : f32[20]@cuda\noutput %0");
  ASSERT_TRUE(plan) << plan.status().message();
  ASSERT_EQ(plan->weights.size(), 1u);
  std::vector<float> values(20), expected;
  ASSERT_EQ(plan->weights[0]->bytes().size(), values.size() * sizeof(float));
  std::memcpy(values.data(), plan->weights[0]->bytes().data(), values.size() * sizeof(float));
  for (int i = 0; i < 20; ++i)
    expected.push_back(static_cast<float>(i * 0.1));
  EXPECT_EQ(values, expected);
}

TEST(Lower, CopiesAreKernelsOnCuda) {
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: f32[2,3,4]@cuda, %d: f64[4]@cuda) {
    %0 = aten.transpose(%x) {dim0=0, dim1=1} : f32[3,2,4][4,12,1]@cuda
    %1 = aten.contiguous(%0) : f32[3,2,4]@cuda
    %2 = aten.to(%x) {dtype=f16} : f16[2,3,4]@cuda
    %3 = aten.clone(%x) : f32[2,3,4]@cuda
    %4 = aten.to(%d) {dtype=f32} : f32[4]@cuda
    %5 = aten.cat([%0, %0]) {dim=1} : f32[3,4,4]@cuda
    %6 = aten.stack([%x, %x]) {dim=0} : f32[2,2,3,4]@cuda
    output %1, %2, %3, %4, %5, %6
  })"),
              ElementsAre("kernel copy", "kernel copy", "memcpy", "aten::copy_", "kernel copy",
                          "kernel copy", "memcpy", "memcpy"));
}

TEST(Lower, ConcatenatedPartsLieOneAfterTheOther) {
  auto module = parse(R"(graph @g(%x: f32[2,3]@cuda, %y: f32[2,1]@cuda, %z: f32[2,4]@cuda) {
    %0 = aten.cat([%x, %y, %z]) {dim=-1} : f32[2,8]@cuda
    output %0
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  ASSERT_EQ(bucket.records.size(), 3u);
  EXPECT_EQ(written(bucket, 0).offset, 0u);
  EXPECT_EQ(written(bucket, 1).offset, 12u);
  EXPECT_EQ(written(bucket, 2).offset, 16u);
}

/// An empty part is either a vector of rank 1 or has a dimension of size 0.
TEST(Lower, EmptyPartsOfACatAreNotCopied) {
  auto module = parse(R"(graph @g(%x: f16[2,3]@cuda, %e: f32[2,0]@cuda, %v: f32[0]@cuda,
                                  %z: f32[2,4]@cuda) {
    %0 = aten.cat([%v, %e, %x, %e, %v, %z, %e]) {dim=1} : f32[2,7]@cuda
    output %0
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  ASSERT_THAT(recordNames(bucket), ElementsAre("kernel copy", "kernel copy"));
  EXPECT_EQ(read(bucket, 0), (Slot{BufferKind::Input, 0, 0}));
  EXPECT_EQ(read(bucket, 1), (Slot{BufferKind::Input, 3, 0}));
  EXPECT_EQ(written(bucket, 0).offset, 0u);
  EXPECT_EQ(written(bucket, 1).offset, 12u); // Three f32.
}

TEST(Lower, ACatOfNothingNeedsNoRecord) {
  const auto plan = lowerForHopper("%x: f32[2,0]@cuda, %y: f32[2,0]@cuda", // lowerAll validates.
                                   "%0 = aten.cat([%x, %y]) {dim=1} : f32[2,0]@cuda\noutput %0");
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(recordNames(plan->plan.entries[0].buckets[0]), ElementsAre());
}

TEST(Lower, ReductionsOfTheLastDimensionAreKernelsOnCuda) {
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: f16[2,3,8]@cuda, %i: i64[2,8]@cuda) {
    %0 = aten.softmax(%x) {dim=-1} : f16[2,3,8]@cuda
    %1 = aten.softmax(%x) {dim=2, dtype=f32} : f32[2,3,8]@cuda
    %2 = aten.softmax(%x) {dim=1} : f16[2,3,8]@cuda
    %3 = aten.argmax(%i) {dim=1} : i64[2]@cuda
    %4 = aten.argmax(%x) : i64[]@cuda
    %5 = aten.argmax(%i) {dim=0} : i64[8]@cuda
    %6 = aten.log_softmax(%x) {dim=2} : f16[2,3,8]@cuda
    %7 = aten.log_softmax(%x) {dim=1} : f16[2,3,8]@cuda
    %8 = aten.transpose(%x) {dim0=1, dim1=2} : f16[2,8,3][24,1,8]@cuda
    %9 = aten.log_softmax(%8) {dim=-1, dtype=f32} : f32[2,8,3]@cuda
    %10 = aten.softmax(%8) {dim=2} : f16[2,8,3]@cuda
    %11 = aten.argmax(%i) {dim=-1} : i64[2]@cuda
    output %0, %1, %2, %3, %4, %5, %6, %7, %9, %10, %11
  })"),
              ElementsAre("kernel softmax_f16", "kernel copy", "kernel softmax_f32",
                          "aten::_softmax.out", "kernel argmax_i64", "kernel argmax_f16",
                          "aten::argmax.out", "kernel log_softmax_f16", "aten::log_softmax.int",
                          "kernel copy", "kernel log_softmax_f32", "kernel copy",
                          "kernel softmax_f16", "kernel argmax_i64"));
}

/// The call of LibTorch widens f16 itself. bf16 is converted first.
TEST(Lower, ASoftmaxThatWidensF16IsOneRecordOnCuda) {
  auto plan = lowerAll(*parse(R"(graph @g(%x: f16[2,3,8]@cuda) {
    %0 = aten.softmax(%x) {dim=1, dtype=f32} : f32[2,3,8]@cuda
    output %0
  })"),
                       DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  ASSERT_THAT(recordNames(bucket), ElementsAre("aten::_softmax.out"));
  EXPECT_EQ(std::get<bool>(std::get<AtenCall>(bucket.records[0].op).args[2]), true);
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: bf16[2,3,8]@cuda) {
    %0 = aten.softmax(%x) {dim=1, dtype=f32} : f32[2,3,8]@cuda
    output %0
  })"),
              ElementsAre("kernel copy", "aten::_softmax.out"));
}

TEST(Lower, SquaredErrorsOfUpTo1048576ElementsAreOneKernelOnCuda) {
  const auto records = [](const std::string &sizes) {
    const std::string type = "f32[" + sizes + "]@cuda";
    return cudaRecords("graph @g(%x: " + type + ", %y: " + type + R"() {
    %0, %1 = cgc.squared_error(%x, %y) {loss_factor=0.5, gradient_factor=1.0} : f32[]@cuda, )" +
                       type + "\n output %0, %1\n}");
  };
  EXPECT_THAT(records("1024,1024"), ElementsAre("kernel squared_error_f32"));
  EXPECT_THAT(records("1024,1025"), Not(Contains("kernel squared_error_f32")));
}

TEST(Lower, MeansOfRowsAreKernelsOnCuda) {
  auto module = parse(R"(graph @g(%x: f16[2,4,7,136]@cuda) {
    %0 = aten.mean(%x) {dim=[2]} : f16[2,4,136]@cuda
    %1 = aten.slice(%0) {dim=1, start=1, end=4} : f16[2,3,136][544,136,1]@cuda
    %2 = aten.mean(%1) {dim=[-2], keepdim=true} : f16[2,1,136]@cuda
    %3 = aten.view(%2) {size=[2, 136]} : f16[2,136]@cuda
    %4 = aten.mean(%3) {dim=[0], dtype=f16} : f16[136]@cuda
    output %4
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  ASSERT_THAT(recordNames(bucket),
              ElementsAre("kernel sum_rows_f16", "kernel sum_rows_f16", "kernel sum_rows_f16"));
  const auto launch = [&](size_t i) { return std::get<KernelLaunch>(bucket.records[i].op); };
  const auto x = [&](size_t i) {
    return bucket.tensors[static_cast<uint32_t>(launch(i).reads[0])];
  };
  EXPECT_THAT(x(0).sizes, ElementsAre(8, 7, 136));
  EXPECT_THAT(x(1).sizes, ElementsAre(2, 3, 136));
  EXPECT_THAT(x(1).strides, ElementsAre(544, 136, 1));
  EXPECT_THAT(x(2).sizes, ElementsAre(1, 2, 136));
  // Each block has 64 of the 136 columns.
  EXPECT_EQ(launch(0).grid[0], 24u);
  EXPECT_EQ(launch(1).grid[0], 6u);
  EXPECT_EQ(launch(2).grid[0], 3u);
}

/// A run of adjacent dimensions is one kernel, several runs one each.
TEST(Lower, OtherMeansAreKernelsOnCuda) {
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: f16[2,3,4,8]@cuda, %y: f16[8]@cuda, %c: f32[3,3,3]@cuda) {
    %0 = aten.mean(%x) {dim=[3]} : f16[2,3,4]@cuda
    %1 = aten.mean(%x) {dim=[1]} : f16[2,4,8]@cuda
    %2 = aten.mean(%x) {dim=[1,2]} : f16[2,8]@cuda
    %3 = aten.mean(%x) : f16[]@cuda
    %4 = aten.mean(%x) {dim=[2], dtype=f32} : f32[2,3,8]@cuda
    %5 = aten.mean(%y) {dim=[0]} : f16[]@cuda
    %6 = aten.mean(%c) {dim=[2]} : f32[3,3]@cuda
    %7 = aten.mean(%c) {dim=[0]} : f32[3,3]@cuda
    output %0, %1, %2, %3, %4, %5, %6, %7
  })"),
              ElementsAre("kernel row_sums_f16", "kernel sum_rows_f16", "kernel sum_rows_f16",
                          "kernel row_sums_f16", "kernel sum_rows_f16", "kernel row_sums_f16",
                          "kernel row_sums_f32", "kernel sum_rows_f32"));
  // The first sums are f32. Strided columns are copied first.
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: f16[2,3,4,8]@cuda) {
    %0 = aten.mean(%x) {dim=[1,3]} : f16[2,4]@cuda
    %1 = aten.permute(%x) {dims=[0,1,3,2]} : f16[2,3,8,4][96,32,1,8]@cuda
    %2 = aten.mean(%1) {dim=[2]} : f16[2,3,4]@cuda
    output %0, %2
  })"),
              ElementsAre("kernel row_sums_f16", "kernel sum_rows_f32", "kernel copy",
                          "kernel copy", "kernel sum_rows_f16"));
}

TEST(Lower, MeansOfF64AndOfNothingStayWithLibTorch) {
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: f64[3,8]@cuda, %e: f32[0,8]@cuda) {
    %0 = aten.mean(%x) {dim=[0]} : f64[8]@cuda
    %1 = aten.mean(%e) {dim=[0]} : f32[8]@cuda
    output %0, %1
  })"),
              ElementsAre("aten::mean.out", "aten::mean.out"));
}

TEST(Lower, EuclideanNormsOfRowsAreOneKernelOnCuda) {
  auto module = parse(R"(graph @g(%x: f32[2,3,4]@cuda) {
    %0 = aten.linalg_vector_norm(%x) {ord=2, dim=[-1], keepdim=true} : f32[2,3,1]@cuda
    %1 = aten.linalg_vector_norm(%x) : f32[]@cuda
    %2 = aten.linalg_vector_norm(%x) {ord=1, dim=[-1]} : f32[2,3]@cuda
    %3 = aten.linalg_vector_norm(%x) {ord=2, dim=[1]} : f32[2,4]@cuda
    output %0, %1, %2, %3
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  ASSERT_THAT(recordNames(bucket),
              ElementsAre("kernel row_sums_f32", "kernel row_sums_f32",
                          "aten::linalg_vector_norm.out", "aten::linalg_vector_norm.out"));
  const auto &rows = std::get<KernelLaunch>(bucket.records[0].op);
  EXPECT_THAT(rows.ints, ElementsAre(4, 1, 1));
  EXPECT_EQ(rows.grid[0], 2u);
  EXPECT_THAT(std::get<KernelLaunch>(bucket.records[1].op).ints, ElementsAre(24, 1, 1));
}

/// The CTAs of one pass sum parts of a long row, one of a second pass their sums.
TEST(Lower, SumsOfFewLongRowsAreSplitOnCuda) {
  auto module = parse(R"(graph @g(%x: bf16[300,100]@cuda) {
    %0 = aten.linalg_vector_norm(%x) : bf16[]@cuda
    output %0
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  ASSERT_THAT(recordNames(bucket),
              ElementsAre("kernel row_sums_bf16", "kernel row_sums_f32", "kernel copy"));
  const auto &parts = std::get<KernelLaunch>(bucket.records[0].op),
             &sum = std::get<KernelLaunch>(bucket.records[1].op);
  EXPECT_THAT(parts.ints, ElementsAre(30000, 1, 0));
  EXPECT_EQ(parts.grid[0], 4u);
  EXPECT_THAT(sum.ints, ElementsAre(4, 0, 1));
}

/// An index has the sizes of self in all other dimensions.
TEST(Lower, GathersAlongADimensionAreOneKernelOnCuda) {
  auto module = parse(R"(graph @g(%x: f32[2,5,3]@cuda, %i: i64[2,4,3]@cuda, %j: i64[1,4,3]@cuda,
                                  %s: f32[2,4,3]@cuda, %m: i64[2,17,3]@cuda, %t: f32[2,17,3]@cuda,
                                  %u: f32[2,6,3]@cuda, %n: i64[2,16,3]@cuda, %v: f32[2,16,3]@cuda,
                                  %p: i64[2,5,3]@cuda, %q: i64[2,4,3]@cuda) {
    %0 = aten.gather(%x, %i) {dim=1} : f32[2,4,3]@cuda
    %1 = aten.scatter_add(%x, %i, %s) {dim=-2} : f32[2,5,3]@cuda
    %2 = aten.gather(%x, %j) {dim=1} : f32[1,4,3]@cuda
    %3 = aten.scatter_add(%x, %m, %t) {dim=1} : f32[2,5,3]@cuda
    %4 = aten.scatter_add(%x, %i, %u) {dim=1} : f32[2,5,3]@cuda
    %5 = aten.scatter_add(%x, %n, %v) {dim=1} : f32[2,5,3]@cuda
    %6 = aten.scatter_add(%p, %i, %q) {dim=1} : i64[2,5,3]@cuda
    output %0, %1, %2, %3, %4, %5, %6
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  EXPECT_THAT(recordNames(bucket),
              ElementsAre("kernel gather", "kernel scatter_add_f32", "aten::gather.out",
                          "aten::scatter_add.out", "aten::scatter_add.out",
                          "kernel scatter_add_f32", "aten::scatter_add.out"));
  EXPECT_EQ(indexRange(bucket.inputs[1])->end, 5);
}

/// Rows without an id stay zeros.
TEST(Lower, TheGradientOfATableIsAFillAndAKernelOnCuda) {
  auto module = parse(R"(graph @g(%g: bf16[2,5,200]@cuda, %i: i64[2,5]@cuda, %h: bf16[0,8]@cuda,
                                  %e: i64[0]@cuda) {
    %0 = cgc.embedding_backward(%g, %i) {num_weights=9, padding_idx=3} : bf16[9,200]@cuda
    output %0
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  ASSERT_THAT(recordNames(bucket), ElementsAre("kernel where", "kernel embedding_backward_bf16"));
  const auto &launch = std::get<KernelLaunch>(bucket.records[1].op);
  EXPECT_EQ(launch.grid[0], 10u);
  EXPECT_EQ(launch.grid[1], 2u);
  EXPECT_THAT(launch.ints, ElementsAre(3));
  EXPECT_EQ(written(bucket, 0), written(bucket, 1));
}

/// LibTorch's call adds the rows of all indices.
TEST(Lower, TheGradientOfThePaddingRowIsZerosOnTheHost) {
  for (const int64_t padding : {-1, 0, 8}) {
    const auto plan = lowerAll(*parse(R"(graph @g(%g: f32[2,5,3], %i: i64[2,5]) {
    %0 = cgc.embedding_backward(%g, %i) {num_weights=9, padding_idx=)" +
                                      std::to_string(padding) + R"(} : f32[9,3]
    output %0
  })"));
    ASSERT_TRUE(plan) << plan.status().message();
    const Bucket &bucket = plan->plan.entries[0].buckets[0];
    std::vector<std::string> names = {"aten::fill_.Scalar", "aten::index_add.out"};
    if (padding >= 0)
      names.emplace_back("aten::fill_.Scalar");
    ASSERT_EQ(recordNames(bucket), names) << padding;
    if (padding >= 0) {
      const TensorId row = recordWrites(bucket.records[2])[0];
      const TensorRef &filled = bucket.tensors[static_cast<uint32_t>(row)];
      EXPECT_EQ(filled.slot.offset, uint64_t(padding) * 3 * sizeof(float));
      EXPECT_THAT(filled.sizes, ElementsAre(3));
    }
  }
}

TEST(Lower, FusedOpsAreOneKernelOnCuda) {
  const std::string inputs =
      "%m: f16[2,3,8,8]@cuda, %p: f16[2,4,16]@cuda, %t: f16[16]@cuda, %q: f16[5,16]@cuda, "
      "%i: i64[2,5]@cuda, %w: f16[9,16]@cuda, %j: i32[2]@cuda";
  auto module = parse("graph @g(" + inputs + R"() {
    %0 = cgc.patches(%m) {patch=[4,4], columns=64} : f16[2,4,64]@cuda
    %1 = cgc.tokens(%p, %t, %q) : f16[2,5,16]@cuda
    %2 = cgc.embedding(%i, %w, %q) : f16[2,5,16]@cuda
    %3 = aten.embedding(%w, %i) : f16[2,5,16]@cuda
    %4, %5 = cgc.add_layer_norm(%1, %2, %t) : f16[2,5,16]@cuda, f16[2,5,16]@cuda
    %6 = cgc.rows(%5, %j) : f16[2,16]@cuda
    %7 = cgc.normalize(%6) {eps=1e-12} : f16[2,16]@cuda
    output %0, %3, %4, %7
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  EXPECT_THAT(recordNames(bucket),
              ElementsAre("kernel patches_f16", "kernel tokens_f16", "kernel embedding_f16",
                          "kernel embedding_f16", "kernel add_layer_norm_f16", "kernel rows_f16",
                          "kernel normalize_f16"));
  EXPECT_EQ(indexRange(bucket.inputs[4])->end, 9);
  EXPECT_EQ(indexRange(bucket.inputs[6])->end, 5);
  EXPECT_EQ(std::get<KernelLaunch>(bucket.records[3].op).reads[2], kNoTensor);
  EXPECT_THAT(std::get<KernelLaunch>(bucket.records[4].op).ints, ElementsAre(10, 16, 10));
}

TEST(Lower, LayerNormByF32ParametersIsOneKernelOnCuda) {
  auto module = parse(R"(graph @g(%x: f16[2,3,8]@cuda, %a: f16[3,8]@cuda, %w: f32[8]@cuda) {
    %0, %1 = cgc.add_layer_norm(%x, none, %w) : f16[2,3,8]@cuda, f16[2,3,8]@cuda
    %2, %3 = cgc.add_layer_norm(%0, %a, none, %w) : f16[2,3,8]@cuda, f16[2,3,8]@cuda
    output %1, %3
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  EXPECT_THAT(recordNames(bucket),
              ElementsAre("kernel layer_norm_by_f32_f16", "kernel add_layer_norm_by_f32_f16"));
  // Without an addend, the sum is the input itself.
  EXPECT_EQ(read(bucket, 1), (Slot{BufferKind::Input, 0, 0}));
}

TEST(Lower, ChainsOfNormsAreOneKernelWhereItsRowsAreWholeVectors) {
  auto module = parse(R"(graph @g(%x: f16[2,3,8]@cuda, %o: f16[2,3,9]@cuda,
                                  %w: f16[8]@cuda, %f: f32[8]@cuda) {
    %0 = cgc.layer_norm_chain(%x, %w, none, none, %w) {eps=0.5, next_eps=0.25, activation="silu"} : f16[2,3,8]@cuda
    %1 = cgc.layer_norm_chain(%x, none, %f, %f) {eps=0.5, next_eps=0.25} : f16[2,3,8]@cuda
    %2 = cgc.layer_norm_chain(%o) {activation="gelu"} : f16[2,3,9]@cuda
    %3 = cgc.layer_norm_chain(%o) {eps=0.5, next_eps=0.25, activation="gelu"} : f16[2,3,9]@cuda
    %4 = cgc.layer_norm_chain(%x, %w, none, none, %f) {eps=0.5, next_eps=0.25} : f16[2,3,8]@cuda
    output %0, %1, %2, %3, %4
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  EXPECT_THAT(
      recordNames(bucket),
      ElementsAre("kernel layer_norm_chain_f16", "kernel layer_norm_chain_by_f32_f16",
                  "kernel layer_norm_chain_f16",
                  // Rows of 9 columns, normalized twice.
                  "kernel layer_norm_f16", "kernel layer_norm_f16", "kernel elementwise_f16",
                  // Parameters of two dtypes.
                  "kernel layer_norm_f16", "kernel copy", "kernel layer_norm_f32", "kernel copy"));
  const auto &twice = std::get<KernelLaunch>(bucket.records[0].op);
  EXPECT_THAT(twice.ints, ElementsAre(6, 8, 2, int64_t(Activation::Silu)));
  EXPECT_THAT(twice.floats, ElementsAre(0.5, 0.25));
  EXPECT_EQ(twice.reads[2], kNoTensor);
  EXPECT_EQ(twice.reads[3], kNoTensor);
  EXPECT_EQ(twice.reads[4], twice.reads[1]);
  EXPECT_THAT(std::get<KernelLaunch>(bucket.records[2].op).ints,
              ElementsAre(6, 9, 1, int64_t(Activation::Gelu)));
}

TEST(Lower, LayerNormOf16BitsByF32WithoutAKernelIsComputedInF32) {
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: f16[2,3,8]@cuda, %w: f32[8]@cuda, %v: f32[8,2]@cuda) {
    %0 = aten.layer_norm(%x, %w) {normalized_shape=[8]} : f16[2,3,8]@cuda
    %1 = aten.select(%v) {dim=1, index=0} : f32[8][2]@cuda
    %2 = aten.layer_norm(%x, none, %1) {normalized_shape=[8]} : f16[2,3,8]@cuda
    output %0, %2
  })"),
              ElementsAre("kernel layer_norm_by_f32_f16", "kernel copy", "aten::layer_norm",
                          "kernel copy"));
}

TEST(Lower, LinearIsALibraryCallOnCudaWhereItsRowsAreDense) {
  auto module = parse(R"(graph @g(%x: f16[2,3,8]@cuda, %w: f16[5,8]@cuda, %b: f16[20]@cuda) {
    %0 = aten.slice(%b) {dim=0, start=8, end=13} : f16[5]@cuda
    %1 = aten.linear(%x, %w, %0) : f16[2,3,5]@cuda
    %2 = aten.slice(%b) {dim=0, start=3, end=8} : f16[5]@cuda
    %3 = aten.linear(%x, %w, %2) : f16[2,3,5]@cuda
    %4 = aten.slice(%x) {dim=2, start=2, end=5} : f16[2,3,3][24,8,1]@cuda
    %5 = aten.slice(%w) {dim=1, start=0, end=3} : f16[5,3][8,1]@cuda
    %6 = aten.linear(%4, %5) : f16[2,3,5]@cuda
    %7 = aten.transpose(%x) {dim0=0, dim1=1} : f16[3,2,8][8,24,1]@cuda
    %8 = aten.linear(%7, %w) : f16[3,2,5]@cuda
    %9 = aten.select(%x) {dim=0, index=0} : f16[3,8]@cuda
    %10 = aten.select(%9) {dim=0, index=2} : f16[8]@cuda
    %11 = aten.linear(%10, %w) : f16[5]@cuda
    output %1, %3, %6, %8, %11
  })");
  auto cuda = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(cuda) << cuda.status().message();
  const Bucket &bucket = cuda->plan.entries[0].buckets[0];
  // The second bias is misaligned, at offset 6 bytes; the rows of the fourth input have no common
  // stride.
  ASSERT_THAT(recordNames(bucket),
              ElementsAre("cublaslt.matmul", "aten::addmm.out", "cublaslt.matmul", "aten::linear",
                          "cublaslt.matmul"));
  auto gemm = [&](size_t record) {
    return *gemmCall(std::get<LibraryCall>(bucket.records[record].op), bucket.tensors);
  };
  auto tensor = [&](TensorId id) { return bucket.tensors[static_cast<uint32_t>(id)]; };
  EXPECT_THAT(tensor(gemm(0).x).sizes, ElementsAre(6, 8));
  EXPECT_EQ(tensor(gemm(0).bias).slot.offset, 16u);
  EXPECT_EQ(gemm(0).residual, kNoTensor);
  EXPECT_EQ(tensor(gemm(0).workspace).sizes[0], 32 << 20);
  EXPECT_FALSE(gemm(0).relu || gemm(0).tf32);
  EXPECT_THAT(tensor(gemm(2).x).strides, ElementsAre(8, 1));
  EXPECT_THAT(tensor(gemm(2).weight).strides, ElementsAre(8, 1));
  EXPECT_EQ(gemm(2).bias, kNoTensor);
  EXPECT_THAT(tensor(gemm(4).x).sizes, ElementsAre(1, 8));
  EXPECT_THAT(tensor(gemm(4).d).sizes, ElementsAre(1, 5));
  // All calls share one workspace.
  EXPECT_LT(bucket.arenaBytes, (32 << 20) + 4096u);
  EXPECT_TRUE(validate(cuda->plan).isOk()) << validate(cuda->plan).message();

  auto portable = lowerAll(*module, {DeviceKind::Cuda, Arch::Sm80});
  ASSERT_TRUE(portable);
  EXPECT_LT(portable->plan.entries[0].buckets[0].arenaBytes, (4 << 20) + 4096u);
}

TEST(Lower, GemmsOfOtherTypesOrNumbersOfElementsStayWithLibTorch) {
  for (std::string types :
       {"f64[2,8] f64[5,8] f64[2,5]", "f32[0,8] f32[5,8] f32[0,5]", "f32[2,0] f32[5,0] f32[2,5]",
        "f16[2147483648,8] f16[8,8] f16[2147483648,8]"}) {
    auto [x, rest] = llvm::StringRef(types).split(' ');
    auto [w, y] = rest.split(' ');
    auto module =
        parse("graph @g(%x: " + x.str() + "@cuda, %w: " + w.str() +
              "@cuda) {\n  %0 = aten.linear(%x, %w) : " + y.str() + "@cuda\n  output %0\n}");
    auto plan = lowerAll(*module, DeviceKind::Cuda);
    ASSERT_TRUE(plan) << plan.status().message();
    EXPECT_THAT(recordNames(plan->plan.entries[0].buckets[0]), ElementsAre("aten::mm.out"))
        << types;
  }
}

} // namespace
} // namespace cgc::backend

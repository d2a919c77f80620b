// Tests of lower(): which kernels compute the gradients of attention and of weights on cuda.
#include "backend/gemm_record.h"
#include "runtime/kernels/attention/attention_backward.h"
#include "runtime/plan/gemm_call.h"
#include "tests/unit/backend/lowered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::backend {
namespace {

using testing::ElementsAre;

std::string bracketed(llvm::ArrayRef<int64_t> sizes) {
  std::string text;
  for (int64_t size : sizes)
    text += (text.empty() ? "[" : ",") + std::to_string(size);
  return text + "]";
}

/// A graph with one cgc.attention_backward of three heads in a batch of two.
struct AttentionBackward {
  std::string dtype = "bf16";
  int64_t queries = 50, keys = 50, width = 64;
  bool packed = false;
  std::string scale = "0.125";
  std::string target = "@cuda";

  Bucket lower(LowerOptions options = {DeviceKind::Cuda, Arch::Sm90a}) const {
    const auto type = [&](llvm::ArrayRef<int64_t> sizes) {
      return dtype + bracketed(sizes) + target;
    };
    const std::string q = type({2, 3, queries, width}), k = type({2, 3, keys, width});
    const std::string results = packed ? type({2, queries, 3, 3, width})
                                       : type({2, queries, 3, width}) + ", " +
                                             type({2, keys, 3, width}) + ", " +
                                             type({2, keys, 3, width});
    const std::string names = packed ? "%0" : "%0, %1, %2";
    auto plan = lowerAll(
        *parse("graph @g(%g: " + q + ", %q: " + q + ", %k: " + k + ", %v: " + k + ") {\n" + names +
               " = cgc.attention_backward(%g, %q, %k, %v) {is_causal=true, scale=" + scale +
               ", packed=" + (packed ? "true" : "false") + "} : " + results + "\noutput " + names +
               "\n}"),
        options);
    EXPECT_TRUE(plan) << plan.status().message();
    return plan ? plan->plan.entries[0].buckets[0] : Bucket();
  }
  /// Whether a kernel computes the gradients, and not the ops of the definition.
  bool hasKernel(LowerOptions options = {DeviceKind::Cuda, Arch::Sm90a}) const {
    const std::vector<std::string> names = recordNames(lower(options));
    const bool has = names[0].starts_with("kernel attention_backward_");
    EXPECT_NE(has, llvm::any_of(names, [](const std::string &name) {
                return name.find("softmax") != std::string::npos;
              }));
    return has;
  }
};

TEST(LowerAttentionBackward, IsOneKernelForTwoWidths) {
  for (const std::string dtype : {"f16", "bf16"})
    for (const int64_t width : {64, 80})
      EXPECT_THAT(recordNames(AttentionBackward{.dtype = dtype, .width = width}.lower()),
                  ElementsAre("kernel attention_backward_" + dtype + "_" + std::to_string(width)));
  const Bucket bucket = AttentionBackward{.queries = 50, .keys = 77}.lower();
  const auto &launch = std::get<KernelLaunch>(bucket.records.at(0).op);
  EXPECT_EQ(launch.grid[0], 3u);
  EXPECT_EQ(launch.grid[1], 2u);
  EXPECT_EQ(launch.block[0], attentionBackwardWarps(50, 77) * 32);
  EXPECT_EQ(launch.sharedBytes, attentionBackwardSharedBytes(50, 77, 64));
  EXPECT_THAT(launch.ints, ElementsAre(2, 3, 50, 77, 1));
  EXPECT_THAT(launch.floats, ElementsAre(0.125));
}

/// The kernel writes the gradients of query, key and value side by side.
TEST(LowerAttentionBackward, WritesAPackedResult) {
  const Bucket bucket = AttentionBackward{.packed = true}.lower();
  ASSERT_EQ(bucket.records.size(), 1u);
  const auto &launch = std::get<KernelLaunch>(bucket.records[0].op);
  ASSERT_EQ(launch.writes.size(), 3u);
  const uint64_t first = bucket.tensors[static_cast<uint32_t>(launch.writes[0])].slot.offset;
  for (uint32_t i = 0; i < 3; ++i) {
    const TensorRef &tensor = bucket.tensors[static_cast<uint32_t>(launch.writes[i])];
    EXPECT_THAT(tensor.sizes, ElementsAre(2, 3, 50, 64));
    EXPECT_THAT(tensor.strides, ElementsAre(50 * 3 * 192, 64, 3 * 192, 1));
    EXPECT_EQ(tensor.slot.offset, first + i * 192 * 2);
  }
}

TEST(LowerAttentionBackward, FallsBackToLibTorch) {
  for (const int64_t width : {32, 72, 96, 128})
    EXPECT_FALSE((AttentionBackward{.width = width}).hasKernel());
  for (const std::string dtype : {"f32", "f64"})
    EXPECT_FALSE((AttentionBackward{.dtype = dtype}).hasKernel());
  for (const std::string scale : {"0.0", "-0.125"})
    EXPECT_FALSE((AttentionBackward{.scale = scale}).hasKernel());
  EXPECT_FALSE((AttentionBackward{.packed = true, .target = ""}).hasKernel(DeviceKind::Cpu));
}

/// All rows of a head are in shared memory, of which a CTA has 227 KiB on sm_90 and 99 KiB on
/// sm_86.
TEST(LowerAttentionBackward, NeedsSharedMemoryForAllRows) {
  const std::tuple<int64_t, int64_t, bool, bool> kRows[] = {
      // Rows, width, whether sm_80 plans and whether sm_90a plans have the kernel.
      {77, 64, true, true},   {77, 80, true, true},   {160, 64, true, true},
      {161, 64, false, true}, {197, 64, false, true}, {257, 64, false, true},
      {257, 80, false, true}, {577, 64, false, false}};
  for (const auto &[rows, width, portable, hopper] : kRows) {
    const AttentionBackward call{.queries = rows, .keys = rows, .width = width};
    EXPECT_EQ(call.hasKernel({DeviceKind::Cuda, Arch::Sm80}), portable) << rows;
    EXPECT_EQ(call.hasKernel({DeviceKind::Cuda, Arch::Sm90a}), hopper) << rows;
  }
}

/// The record that computes the gradient, and its bucket. Casts come first.
struct WeightGradient {
  LaunchRecord record;
  Bucket bucket;
};
WeightGradient weightGradient(const std::string &from, const std::string &to, DeviceKind target) {
  const std::string at = target == DeviceKind::Cuda ? "@cuda" : "";
  auto plan =
      lowerAll(*parse("graph @g(%g: " + from + "[2,3,8]" + at + ", %x: " + from + "[2,3,16]" + at +
                      ") {\n%0 = cgc.weight_gradient(%g, %x) {dtype=" + to + "} : " + to +
                      "[8,16]" + at + "\noutput %0\n}"),
               target);
  EXPECT_TRUE(plan) << plan.status().message();
  if (!plan)
    return {};
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  return {bucket.records.back(), bucket};
}

TEST(LowerWeightGradient, IsOneGemmOfTransposedOperandsOnCuda) {
  const std::pair<const char *, DType> kTypes[] = {
      {"f16", DType::F32}, {"bf16", DType::F32}, {"bf16", DType::BF16}, {"f32", DType::F32}};
  for (const auto &[from, to] : kTypes) {
    const auto [record, bucket] =
        weightGradient(from, std::string(dtypeName(to)), DeviceKind::Cuda);
    const auto *call = std::get_if<LibraryCall>(&record.op);
    ASSERT_TRUE(call && isGemm(*call)) << from;
    const auto gemm = gemmCall(*call, bucket.tensors);
    ASSERT_TRUE(gemm.isOk()) << gemm.status().message();
    const auto tensor = [&](TensorId id) { return bucket.tensors[uint32_t(id)]; };
    EXPECT_TRUE(isTransposed(tensor(gemm->x)));
    EXPECT_TRUE(isTransposed(tensor(gemm->weight)));
    EXPECT_EQ(tensor(gemm->d).dtype, to);
    EXPECT_EQ(tensor(gemm->d).sizes, (std::vector<int64_t>{8, 16}));
    const auto decoded = decodeGemm(record, bucket);
    ASSERT_TRUE(decoded) << "the tuner would not see it";
    EXPECT_TRUE(decoded->problem.x.transposed && decoded->problem.w.transposed);
    EXPECT_EQ(decoded->problem.yDType.value_or(decoded->problem.dtype), to);
  }
}

TEST(LowerWeightGradient, IsAProductOfLibTorchElsewhere) {
  const std::tuple<std::string, std::string, DeviceKind> kCalls[] = {
      {"bf16", "f32", DeviceKind::Cpu}, {"f32", "f64", DeviceKind::Cuda}};
  for (const auto &[from, to, target] : kCalls)
    EXPECT_EQ(recordName(weightGradient(from, to, target).record), "aten::mm.out")
        << from << " " << to;
}

/// simplify-gradients leaves a view of the packed gradients: nothing copies them for the product.
TEST(LowerWeightGradient, ReadsThePackedGradientsOfAttention) {
  auto plan = lowerForHopper(
      "%g: bf16[2,3,50,64]@cuda, %q: bf16[2,3,50,64]@cuda, %x: bf16[2,50,192]@cuda",
      R"(%0 = cgc.attention_backward(%g, %q, %q, %q) {scale=0.125, packed=true} : bf16[2,50,3,3,64]@cuda
  %1 = aten.view(%0) {size=[2, 50, 576]} : bf16[2,50,576]@cuda
  %2 = cgc.weight_gradient(%1, %x) {dtype=f32} : f32[576,192]@cuda
  output %2)");
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(recordNames(plan->plan.entries[0].buckets[0]),
              ElementsAre("kernel attention_backward_bf16_64", "cublaslt.matmul"));
}

} // namespace
} // namespace cgc::backend

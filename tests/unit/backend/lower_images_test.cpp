// Tests of lower(): which kernels compute cgc.conv2d and cgc.pool2d, and what LibTorch computes.
#include "backend/gemm_record.h"
#include "tests/unit/backend/lowered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::backend {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Result<CompiledPlan> lowerImages(const std::string &inputs, const std::string &call,
                                 const std::string &result, Arch arch = Arch::Sm90a) {
  const auto module =
      parse("graph @g(" + inputs + ") {\n  %0 = " + call + " : " + result + "\n  output %0\n}");
  return lowerAll(*module, {DeviceKind::Cuda, arch});
}

std::vector<std::string> namesOf(const Result<CompiledPlan> &plan) {
  EXPECT_TRUE(plan) << plan.status().message();
  return plan ? recordNames(plan->plan.entries[0].buckets[0]) : std::vector<std::string>();
}

TEST(LowerImages, ConvolutionsAreOneGemmOfWindows) {
  for (const std::string dtype : {"f16", "bf16"}) {
    const auto plan = lowerImages(
        "%x: " + dtype + "[2,9,8,24]@cuda, %w: " + dtype + "[16,3,2,24]@cuda, %b: " + dtype +
            "[16]@cuda, %r: " + dtype + "[2,5,9,16]@cuda",
        "cgc.conv2d(%x, %w, %b, %r) {activation=\"relu\", stride=[2, 1], padding=[1, 1]}",
        dtype + "[2,5,9,16]@cuda");
    EXPECT_THAT(namesOf(plan), ElementsAre(StartsWith("kernel conv_" + dtype + "_")));
    // The record is the GEMM that it was made of.
    const Bucket &bucket = plan->plan.entries[0].buckets[0];
    const auto gemm = decodeGemm(bucket.records[0], bucket);
    ASSERT_TRUE(gemm);
    EXPECT_EQ(describe(gemm->problem),
              "conv " + dtype +
                  " [2,9,8,24] to 5x9x16, kernel 3x2, stride 2x1, padding 1x1, dilation 1x1, bias, "
                  "activation 5, residual [90,16]");
    EXPECT_EQ(std::get<KernelLaunch>(encodeGemm(*gemm)).ints,
              std::get<KernelLaunch>(bucket.records[0].op).ints);
    EXPECT_EQ(gemm->problem.k, 3 * 2 * 64);
    for (const GemmChoice &choice : gemmCandidates(gemm->problem, {Arch::Sm90a, 132}))
      EXPECT_TRUE(std::holds_alternative<GemmKernelChoice>(choice));
  }
}

TEST(LowerImages, ChannelsByThemselvesAndPoolsAreOneKernelOnEveryGpu) {
  for (const Arch arch : {Arch::Sm90a, Arch::Sm80}) {
    // Weights are read with the results last: a view of those needs no copy.
    EXPECT_THAT(namesOf(lowerImages("%x: f16[2,9,8,24]@cuda, %w: f16[24,3,3,1]@cuda",
                                    "cgc.conv2d(%x, %w) {padding=[1, 1], groups=24}",
                                    "f16[2,9,8,24]@cuda", arch)),
                ElementsAre("kernel copy", "kernel depthwise_conv_f16"));
    const auto module = parse("graph @g(%x: f16[2,9,8,24]@cuda, %w: f16[3,3,1,48]@cuda) {\n"
                              "  %0 = aten.permute(%w) {dims=[3, 0, 1, 2]} : "
                              "f16[48,3,3,1][1,144,48,48]@cuda\n"
                              "  %1 = cgc.conv2d(%x, %0) {padding=[1, 1], groups=24} : "
                              "f16[2,9,8,48]@cuda\n  output %1\n}");
    EXPECT_THAT(namesOf(lowerAll(*module, {DeviceKind::Cuda, arch})),
                ElementsAre("kernel depthwise_conv_f16"));
    // Images with few channels are read as they lie.
    EXPECT_THAT(namesOf(lowerImages("%x: f16[2,9,8,3]@cuda, %w: f16[16,3,3,3]@cuda",
                                    "cgc.conv2d(%x, %w) {activation=\"relu\", stride=[2, 2]}",
                                    "f16[2,4,3,16]@cuda", arch)),
                ElementsAre("kernel stem_conv_f16"));
    EXPECT_THAT(namesOf(lowerImages("%x: f32[2,9,8,24]@cuda",
                                    "cgc.pool2d(%x) {kind=\"max\", kernel_size=[2, 2]}",
                                    "f32[2,4,4,24]@cuda", arch)),
                ElementsAre("kernel pool_f32"));
  }
}

/// The kernel that computes the rows of a cgc.norm_linear writes their row statistics.
TEST(LowerImages, ConvolutionsWriteRowStatistics) {
  for (const std::string call :
       {"cgc.conv2d(%x, %d) {padding=[1, 1], groups=64, row_statistics=true}",
        "cgc.conv2d(%x, %w) {padding=[1, 1], row_statistics=true}"}) {
    const auto module =
        parse("graph @g(%x: f16[2,9,8,64]@cuda, %d: f16[64,3,3,1]@cuda, %w: f16[64,3,3,64]@cuda, "
              "%v: f16[128,64]@cuda) {\n  %0, %1 = " +
              call +
              " : f16[2,9,8,64]@cuda, f32[144,1,2]@cuda\n"
              "  %2 = cgc.norm_linear(%0, %v, none, %1) {eps=1e-05} : f16[2,9,8,128]@cuda\n"
              "  output %2\n}");
    const auto plan = lowerAll(*module, {DeviceKind::Cuda, Arch::Sm90a});
    ASSERT_TRUE(plan) << plan.status().message();
    const std::vector<std::string> names = namesOf(plan);
    EXPECT_THAT(names.back(), StartsWith("kernel gemm_norm_f16"));
    EXPECT_THAT(names, Not(Contains(HasSubstr("aten::"))));
    const auto &records = plan->plan.entries[0].buckets[0].records;
    EXPECT_EQ(recordWrites(records[records.size() - 2]).size(), 2u) << call;
  }
}

/// Groups of channels, results that are no multiple of 8, a residual, many products on another GPU,
/// and f32.
TEST(LowerImages, LibTorchComputesWhatNoKernelTakes) {
  const auto expectLibTorch = [](const Result<CompiledPlan> &plan) {
    EXPECT_THAT(namesOf(plan), Contains(HasSubstr("aten::conv2d")));
  };
  expectLibTorch(lowerImages("%x: f16[2,9,8,24]@cuda, %w: f16[16,3,3,12]@cuda",
                             "cgc.conv2d(%x, %w) {groups=2}", "f16[2,7,6,16]@cuda"));
  expectLibTorch(lowerImages("%x: f16[2,9,8,6]@cuda, %w: f16[12,3,3,6]@cuda", "cgc.conv2d(%x, %w)",
                             "f16[2,7,6,12]@cuda"));
  expectLibTorch(lowerImages(
      "%x: f16[2,9,8,6]@cuda, %w: f16[16,3,3,6]@cuda, %b: f16[16]@cuda, %r: f16[2,7,6,16]@cuda",
      "cgc.conv2d(%x, %w, %b, %r)", "f16[2,7,6,16]@cuda"));
  expectLibTorch(lowerImages("%x: f16[2,9,8,32]@cuda, %w: f16[16,3,3,32]@cuda",
                             "cgc.conv2d(%x, %w)", "f16[2,7,6,16]@cuda", Arch::Sm80));
  expectLibTorch(lowerImages("%x: f32[2,9,8,24]@cuda, %w: f32[16,3,3,24]@cuda",
                             "cgc.conv2d(%x, %w)", "f32[2,7,6,16]@cuda"));
}

} // namespace
} // namespace cgc::backend

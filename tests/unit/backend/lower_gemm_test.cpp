// lower() of GEMMs on cuda: what computes them, and what is fused.
#include "backend/gemm_record.h"
#include "runtime/kernels/pointwise/activation.h"
#include "runtime/kernels/pointwise/elementwise.h"
#include "runtime/plan/gemm_call.h"
#include "tests/unit/backend/lowered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::backend {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

const auto kGemmGraph = StartsWith("kernel gemm_f16_");
const std::string kLibrary = "cublaslt.matmul";

/// A cgc.linear and the lines that compute its operands.
struct Linear {
  std::string x, weight, result; ///< Types of the tensors.
  std::string residual = {};     ///< The type of the residual; "": none.
  std::string activation = "none";
  std::string lines = {};  ///< IR lines before it.
  std::string inputs = {}; ///< More graph inputs, each preceded by a comma.

  Bucket lower(Arch arch = Arch::Sm90a) const {
    const auto input = [&](const std::string &name, const std::string &type) {
      return lines.find(name + " =") == std::string::npos ? ", " + name + ": " + type : "";
    };
    const auto module =
        parse("graph @g(%unused: f16[1]@cuda" + input("%x", x) + input("%w", weight) +
              (residual.empty() ? "" : input("%r", residual)) + inputs + ") {\n" + lines +
              "\n%0 = cgc.linear(%x, %w, none, " + (residual.empty() ? "none" : "%r") +
              ") {activation=\"" + activation + "\"} : " + result + "\noutput %0\n}");
    auto plan = lowerAll(*module, {DeviceKind::Cuda, arch});
    EXPECT_TRUE(plan) << plan.status().message();
    return plan ? plan->plan.entries[0].buckets[0] : Bucket();
  }
};

GemmCall callOf(const Bucket &bucket) {
  return *gemmCall(std::get<LibraryCall>(bucket.records[0].op), bucket.tensors);
}
const TensorRef &tensorOf(const Bucket &bucket, TensorId id) {
  return bucket.tensors[static_cast<uint32_t>(id)];
}

/// A GEMM of 1.4e11 multiplications.
const Linear kLarge = {
    .x = "f16[16384,4096]@cuda", .weight = "f16[2048,4096]@cuda", .result = "f16[16384,2048]@cuda"};

TEST(LowerGemm, ALargeOneIsTheLibrarysIfItFusesAll) {
  for (const std::string activation : {"none", "relu", "gelu", "gelu_tanh", "quick_gelu"})
    for (const bool residual : {false, true}) {
      SCOPED_TRACE(activation + (residual ? " and a residual" : ""));
      Linear linear = kLarge;
      linear.activation = activation;
      if (residual)
        linear.residual = linear.result;
      const Bucket bucket = linear.lower();
      if (activation != "none" && (activation != "relu" || residual)) {
        ASSERT_THAT(recordNames(bucket), ElementsAre(kGemmGraph));
        EXPECT_EQ(launchOf(bucket, 0).reads[3] != kNoTensor, residual);
        continue;
      }
      ASSERT_THAT(recordNames(bucket), ElementsAre(kLibrary));
      EXPECT_EQ(callOf(bucket).relu, activation == "relu");
      EXPECT_EQ(callOf(bucket).residual != kNoTensor, residual);
      EXPECT_FALSE(callOf(bucket).tf32);
    }
}

TEST(LowerGemm, OneIsLargeFrom1e11MultiplicationsOn) {
  const auto ofRows = [](int64_t rows) {
    const std::string matrix = "f16[" + std::to_string(rows) + ",1000]@cuda";
    return recordNames(
        Linear{.x = matrix, .weight = "f16[1000,1000]@cuda", .result = matrix}.lower());
  };
  EXPECT_THAT(ofRows(100000), ElementsAre(kLibrary));
  EXPECT_THAT(ofRows(99999), ElementsAre(kGemmGraph));
}

/// Whether our kernel or cuBLASLt computes the GEMM.
TEST(LowerGemm, AResidualIsFusedIfItsRowsAreDense) {
  Linear small = {.x = "f16[16,64]@cuda", .weight = "f16[24,64]@cuda", .result = "f16[16,24]@cuda"};
  small.residual = small.result;
  small.inputs = ", %s: f16[16,48]@cuda, %t: f16[24,16]@cuda, %u: f16[1,24]@cuda";
  Linear large = kLarge;
  large.residual = large.result;
  large.inputs = ", %s: f16[16384,4096]@cuda, %t: f16[2048,16384]@cuda, %u: f16[1,2048]@cuda";

  small.lines = "%r = aten.slice(%s) {dim=1, start=8, end=32} : f16[16,24][48,1]@cuda";
  large.lines = "%r = aten.slice(%s) {dim=1, start=8, end=2056} : f16[16384,2048][4096,1]@cuda";
  const Bucket gemm = small.lower(), call = large.lower();
  ASSERT_THAT(recordNames(gemm), ElementsAre(kGemmGraph));
  EXPECT_THAT(tensorOf(gemm, launchOf(gemm, 0).reads[3]).strides, ElementsAre(48, 1));
  ASSERT_THAT(recordNames(call), ElementsAre(kLibrary));
  EXPECT_THAT(tensorOf(call, callOf(call).residual).strides, ElementsAre(4096, 1));

  const std::pair<std::string, std::string> kOthers[] = {
      {"%r = aten.transpose(%t) {dim0=0, dim1=1} : f16[16,24][1,16]@cuda",
       "%r = aten.transpose(%t) {dim0=0, dim1=1} : f16[16384,2048][1,16384]@cuda"},
      {"%r = aten.expand(%u) {size=[16, 24]} : f16[16,24][0,1]@cuda",
       "%r = aten.expand(%u) {size=[16384, 2048]} : f16[16384,2048][0,1]@cuda"},
      {"%r = aten.slice(%s) {dim=1, start=0, end=48, step=2} : f16[16,24][48,2]@cuda",
       "%r = aten.slice(%s) {dim=1, start=0, end=4096, step=2} : f16[16384,2048][4096,2]@cuda"}};
  for (const auto &[ofSmall, ofLarge] : kOthers) {
    small.lines = ofSmall;
    large.lines = ofLarge;
    const Bucket ours = small.lower(), library = large.lower();
    ASSERT_THAT(recordNames(ours), ElementsAre(kGemmGraph, "kernel elementwise_f16")) << ofSmall;
    EXPECT_EQ(launchOf(ours, 0).reads[3], kNoTensor);
    ASSERT_THAT(recordNames(library), ElementsAre(kLibrary, "kernel elementwise_f16")) << ofLarge;
    EXPECT_EQ(callOf(library).residual, kNoTensor);
    for (const Bucket &bucket : {ours, library})
      EXPECT_THAT(launchOf(bucket, 1).ints, ElementsAre(int64_t(ElementwiseOp::Add)));
  }
}

/// Its rows have no single stride.
TEST(LowerGemm, AResidualThatIsNoMatrixIsAddedAfterwards) {
  const Bucket bucket =
      Linear{.x = "f16[2,3,64]@cuda",
             .weight = "f16[24,64]@cuda",
             .result = "f16[2,3,24]@cuda",
             .residual = "f16[2,3,24]@cuda",
             .lines = "%r = aten.transpose(%s) {dim0=0, dim1=1} : f16[2,3,24][24,48,1]@cuda",
             .inputs = ", %s: f16[3,2,24]@cuda"}
          .lower();
  ASSERT_THAT(recordNames(bucket), ElementsAre(kGemmGraph, "kernel elementwise_f16"));
  EXPECT_EQ(launchOf(bucket, 0).reads[3], kNoTensor);
}

/// The row statistics of a result include its residual.
TEST(LowerGemm, AResidualThatIsAddedAfterwardsLeavesNoRowStatistics) {
  auto plan = lowerForHopper(
      "%x: f16[6,64]@cuda, %p: f16[64,64]@cuda, %t: f16[64,6]@cuda, %w: f16[24,64]@cuda",
      R"(%r = aten.transpose(%t) {dim0=0, dim1=1} : f16[6,64][1,6]@cuda
  %0, %s = cgc.linear(%x, %p, none, %r) {row_statistics=true} : f16[6,64]@cuda, f32[6,1,2]@cuda
  %1 = cgc.norm_linear(%0, %w, none, %s) : f16[6,24]@cuda
  output %1)");
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  ASSERT_THAT(recordNames(bucket), ElementsAre(kGemmGraph, "kernel elementwise_f16",
                                               "kernel layer_norm_f16", kGemmGraph));
  EXPECT_EQ(launchOf(bucket, 0).writes[1], kNoTensor);
}

/// The tuner tries the kernels that it could be.
TEST(LowerGemm, AMatmulIsTheLibrarysUntilItIsTuned) {
  const auto kernels = [](const std::string &b, const std::string &lines) {
    auto plan = lowerForHopper("%a: f16[16,64]@cuda, %b: " + b,
                               lines + "\n%0 = aten.matmul(%a, %m) : f16[16,24]@cuda\noutput %0");
    EXPECT_TRUE(plan) << plan.status().message();
    const Bucket bucket = plan ? plan->plan.entries[0].buckets[0] : Bucket();
    EXPECT_THAT(recordNames(bucket), ElementsAre(kLibrary));
    const auto gemm = decodeGemm(bucket.records.at(0), bucket);
    return gemm ? gemmCandidates(gemm->problem, {Arch::Sm90a, 132}).size() - 1 : 0;
  };
  EXPECT_GT(kernels("f16[24,64]@cuda",
                    "%m = aten.transpose(%b) {dim0=0, dim1=1} : f16[64,24][1,64]@cuda"),
            0U);
  EXPECT_EQ(
      kernels("f16[128,24]@cuda", "%m = aten.slice(%b) {dim=0, start=0, end=64} : f16[64,24]@cuda"),
      0U);
}

TEST(LowerGemm, AnInputWithDenseColumnsIsTheLibrarys) {
  const Bucket bucket =
      Linear{.x = "",
             .weight = "f16[24,64]@cuda",
             .result = "f16[16,24]@cuda",
             .lines = "%x = aten.transpose(%t) {dim0=0, dim1=1} : f16[16,64][1,16]@cuda",
             .inputs = ", %t: f16[64,16]@cuda"}
          .lower();
  ASSERT_THAT(recordNames(bucket), ElementsAre(kLibrary));
  EXPECT_TRUE(isTransposed(tensorOf(bucket, callOf(bucket).x)));
}

/// GEMMs before Hopper and in f32.
TEST(LowerGemm, WhatTheLibraryDoesNotFuseComesAfterwardsInOrder) {
  const Linear half = {
      .x = "f16[32,64]@cuda", .weight = "f16[24,64]@cuda", .result = "f16[32,24]@cuda"};
  const Linear full = {
      .x = "f32[4096,512]@cuda", .weight = "f32[128,512]@cuda", .result = "f32[4096,128]@cuda"};
  for (auto [linear, arch] : {std::pair(half, Arch::Sm80), {full, Arch::Sm90a}}) {
    const auto expect = [&](const std::string &activation, bool hasResidual, bool fusesResidual,
                            const std::vector<ElementwiseOp> &rest) {
      SCOPED_TRACE(linear.x + " " + activation + (hasResidual ? " and a residual" : ""));
      linear.activation = activation;
      linear.residual = hasResidual ? linear.result : "";
      const Bucket bucket = linear.lower(arch);
      ASSERT_EQ(bucket.records.size(), 1 + rest.size());
      EXPECT_EQ(callOf(bucket).relu, activation == "relu");
      EXPECT_EQ(callOf(bucket).residual != kNoTensor, fusesResidual);
      for (size_t i = 0; i < rest.size(); ++i)
        EXPECT_EQ(launchOf(bucket, 1 + i).ints[0], int64_t(rest[i])) << i;
    };
    using enum ElementwiseOp;
    expect("none", false, false, {});
    expect("none", true, true, {});
    expect("relu", false, false, {});
    expect("relu", true, false, {Add});
    expect("gelu", false, false, {Gelu});
    expect("gelu", true, false, {Gelu, Add});
  }
}

/// The name of the only record of a product in f32, [m, k] by [n, k].
std::string nameOfF32(int64_t m, int64_t n, int64_t k, Arch arch = Arch::Sm90a) {
  const auto type = [](int64_t rows, int64_t columns) {
    return "f32[" + std::to_string(rows) + "," + std::to_string(columns) + "]@cuda";
  };
  const auto names =
      recordNames(Linear{.x = type(m, k), .weight = type(n, k), .result = type(m, n)}.lower(arch));
  return names.size() == 1 ? names[0] : "";
}

/// Clusters share K as long as all fit into the GPU, each CTA on an SM of its own.
TEST(LowerGemm, SmallOnesInF32SplitK) {
  EXPECT_EQ(nameOfF32(64, 896, 1024), "kernel gemm_f32_8");
  EXPECT_EQ(nameOfF32(64, 1024, 1024), "kernel gemm_f32_6");
  EXPECT_EQ(nameOfF32(128, 1024, 512), "kernel gemm_f32_3");
  EXPECT_EQ(nameOfF32(1024, 1024, 64), "kernel gemm_f32_1");
  EXPECT_EQ(nameOfF32(64, 64, 96), "kernel gemm_f32_3"); // A step of 32 for each CTA.
}

TEST(LowerGemm, OthersInF32AreTheLibrarys) {
  EXPECT_EQ(nameOfF32(128, 1024, 1020), "kernel gemm_f32_3");
  EXPECT_EQ(nameOfF32(128, 1024, 1024), kLibrary); // 2^27 multiplications.
  EXPECT_EQ(nameOfF32(16, 16, 64), "kernel gemm_f32_2");
  EXPECT_EQ(nameOfF32(15, 64, 64), kLibrary);
  EXPECT_EQ(nameOfF32(64, 12, 64), kLibrary);
  EXPECT_EQ(nameOfF32(64, 64, 64, Arch::Sm80), kLibrary);
  EXPECT_EQ(nameOfF32(64, 66, 64), kLibrary); // Our kernel stores 16 bytes at a time.
}

/// Our kernels load and store 16 bytes at a time.
TEST(LowerGemm, OnesWithoutVectorsAreTheLibrarys) {
  const Linear good = {.x = "f16[16,64]@cuda",
                       .weight = "f16[24,64]@cuda",
                       .result = "f16[16,24]@cuda",
                       .residual = "f16[16,24]@cuda"};
  EXPECT_THAT(recordNames(good.lower()), ElementsAre(kGemmGraph));

  const std::string inputs = ", %s: f16[1032]@cuda, %t: f16[16,68]@cuda, %u: f16[24,68]@cuda, "
                             "%v: f16[1544]@cuda, %y: f16[392]@cuda, %z: f16[16,28]@cuda";
  const std::pair<std::string, bool> kLines[] = {
      // Addresses 16 or 8 bytes into the buffer.
      {"%a = aten.slice(%s) {dim=0, start=8, end=1032} : f16[1024]@cuda\n"
       "%x = aten.view(%a) {size=[16, 64]} : f16[16,64]@cuda",
       true},
      {"%a = aten.slice(%s) {dim=0, start=4, end=1028} : f16[1024]@cuda\n"
       "%x = aten.view(%a) {size=[16, 64]} : f16[16,64]@cuda",
       false},
      {"%a = aten.slice(%v) {dim=0, start=4, end=1540} : f16[1536]@cuda\n"
       "%w = aten.view(%a) {size=[24, 64]} : f16[24,64]@cuda",
       false},
      {"%a = aten.slice(%y) {dim=0, start=4, end=388} : f16[384]@cuda\n"
       "%r = aten.view(%a) {size=[16, 24]} : f16[16,24]@cuda",
       false},
      // Row strides.
      {"%x = aten.slice(%t) {dim=1, start=0, end=64} : f16[16,64][68,1]@cuda", false},
      {"%w = aten.slice(%u) {dim=1, start=0, end=64} : f16[24,64][68,1]@cuda", false},
      {"%r = aten.slice(%z) {dim=1, start=0, end=24} : f16[16,24][28,1]@cuda", false}};
  for (const auto &[lines, isOurs] : kLines) {
    Linear linear = good;
    linear.lines = lines;
    linear.inputs = inputs;
    if (isOurs)
      EXPECT_THAT(recordNames(linear.lower()), ElementsAre(kGemmGraph)) << lines;
    else
      EXPECT_THAT(recordNames(linear.lower()), ElementsAre(kLibrary)) << lines;
  }
  for (const Linear &linear :
       {Linear{"f16[16,64]@cuda", "f16[20,64]@cuda", "f16[16,20]@cuda"},
        Linear{"f16[16,60]@cuda", "f16[24,60]@cuda", "f16[16,24]@cuda"},
        Linear{.x = "",
               .weight = "",
               .result = "f16[16,24]@cuda",
               .lines = "%x = aten.slice(%s) {dim=1, start=0, end=60} : f16[16,60][64,1]@cuda\n"
                        "%w = aten.slice(%t) {dim=1, start=0, end=60} : f16[24,60][64,1]@cuda",
               .inputs = ", %s: f16[16,64]@cuda, %t: f16[24,64]@cuda"}})
    EXPECT_THAT(recordNames(linear.lower()), ElementsAre(kLibrary)) << linear.x;

  // The row stride of a single row does not matter.
  EXPECT_THAT(recordNames(Linear{
                  .x = "f16[1,64]@cuda",
                  .weight = "f16[24,64]@cuda",
                  .result = "f16[1,24]@cuda",
                  .lines = "%x = aten.slice(%t) {dim=1, start=0, end=64} : f16[1,64][68,1]@cuda",
                  .inputs = ", %t: f16[1,68]@cuda"}
                              .lower()),
              ElementsAre(kGemmGraph));
}

TEST(LowerGemm, OnesWithGapsBetweenColumnsAreLibTorchs) {
  const Linear gaps = {.x = "f16[16,64]@cuda",
                       .weight = "f16[24,64]@cuda",
                       .result = "f16[16,24]@cuda",
                       .inputs = ", %s: f16[16,128]@cuda, %t: f16[24,128]@cuda"};
  for (const std::string lines :
       {"%x = aten.slice(%s) {dim=1, start=0, end=128, step=2} : f16[16,64][128,2]@cuda",
        "%w = aten.slice(%t) {dim=1, start=0, end=128, step=2} : f16[24,64][128,2]@cuda"}) {
    Linear linear = gaps;
    linear.lines = lines;
    EXPECT_THAT(recordNames(linear.lower()), ElementsAre("aten::mm.out")) << lines;
  }
}

/// Neither our kernels nor cuBLASLt take a bias that is not aligned to 16 bytes.
TEST(LowerGemm, ABiasLiesInVectors) {
  const std::pair<std::string, std::string> kBiases[] = {
      {"start=8, end=32} : f16[24]", "kernel gemm_f16_"},
      {"start=4, end=28} : f16[24]", "aten::addmm.out"},
      {"start=0, end=48, step=2} : f16[24][2]", "aten::addmm.out"}};
  for (const auto &[slice, record] : kBiases) {
    auto plan =
        lowerForHopper("%x: f16[16,64]@cuda, %w: f16[24,64]@cuda, %a: f16[48]@cuda",
                       "%b = aten.slice(%a) {dim=0, " + slice +
                           "@cuda\n%0 = aten.linear(%x, %w, %b) : f16[16,24]@cuda\noutput %0");
    ASSERT_TRUE(plan) << plan.status().message();
    EXPECT_THAT(recordNames(plan->plan.entries[0].buckets[0]), ElementsAre(StartsWith(record)))
        << slice;
  }
}

} // namespace
} // namespace cgc::backend

// Records of GEMMs: what is encoded is decoded again, kernels accept it, and its text names it.
#include "backend/gemm_record.h"

#include "runtime/plan/gemm_call.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gtest/gtest.h>

namespace cgc::backend {
namespace {

using test::dense;
using test::id;

constexpr int64_t kM = 1600, kN = 256, kK = 1024;

/// A bucket with operands of any GEMM of [kM,kK] by [kN,kK] in `dtype`. The rows of w are strided.
Bucket bucketOf(DType dtype) {
  Bucket bucket;
  bucket.tensors = {dense(BufferKind::Input, 0, 0, dtype, {kM, kK}),
                    {{BufferKind::Weight, 0, 48}, dtype, {kN, kK}, {kK + 8, 1}},
                    dense(BufferKind::Weight, 1, 0, dtype, {kN}),
                    dense(BufferKind::Arena, 0, 0, dtype, {kM, kN}),
                    dense(BufferKind::Arena, 0, 1 << 22, DType::F32, {kM, kK / 64, 2}),
                    dense(BufferKind::Output, 0, 0, dtype, {kM, kN}),
                    dense(BufferKind::Arena, 0, 1 << 23, DType::F32, {kM, kN / 64, 2}),
                    dense(BufferKind::Arena, 0, 1 << 24, DType::U8, {1 << 20})};
  return bucket;
}

GemmRecord plainGemm(DType dtype) {
  return {.problem = {.dtype = dtype,
                      .m = kM,
                      .n = kN,
                      .k = kK,
                      .x = {kK, 256},
                      .w = {kK + 8, 16},
                      .y = {kN, 256}},
          .operands = {.x = id(0), .w = id(1), .y = id(5)},
          .choice = GemmLibraryChoice{}};
}

/// All that a kernel's epilogue can do to plain rows.
GemmRecord fullGemm(DType dtype) {
  GemmRecord gemm = plainGemm(dtype);
  gemm.problem.residual = {kN, 256};
  gemm.problem.epilogue = {
      .bias = true, .residual = true, .activation = Activation::Gelu, .rowStatistics = true};
  gemm.operands.bias = id(2);
  gemm.operands.residual = id(3);
  gemm.operands.yStatistics = id(6);
  return gemm;
}

GemmRecord normGemm(DType dtype) {
  GemmRecord gemm = plainGemm(dtype);
  gemm.problem.epilogue.normEps = 1e-5;
  gemm.operands.xStatistics = id(4);
  return gemm;
}

GemmRecord callOf(GemmRecord gemm) {
  gemm.choice = GemmLibraryChoice{std::vector(80, std::byte{7})};
  gemm.workspace = id(7);
  return gemm;
}

/// A GEMM in f32 that is small: both operands transposed, with the sums of the rows of x.
GemmRecord smallGemm() {
  return {.problem = {.dtype = DType::F32,
                      .m = 64,
                      .n = 32,
                      .k = 96,
                      .x = {64, 256, true},
                      .w = {32, 256, true},
                      .y = {32, 256},
                      .epilogue = {.xSums = true}},
          .operands = {.x = id(0), .w = id(1), .y = id(2), .xSums = id(3)},
          .choice = GemmF32Choice{1}};
}

/// A step of SGD by such gradients.
GemmRecord sgdGemm() {
  GemmRecord gemm = smallGemm();
  gemm.problem.epilogue.sgdWeightDecay = 0.25;
  gemm.operands.lr = id(4);
  gemm.operands.oldWeight = id(5);
  gemm.operands.oldBias = id(6);
  gemm.operands.step = id(7);
  gemm.operands.nextStep = id(8);
  return gemm;
}

Bucket smallBucket() {
  Bucket bucket;
  bucket.tensors = {{{BufferKind::Input, 0, 0}, DType::F32, {64, 96}, {1, 64}},
                    {{BufferKind::Input, 1, 0}, DType::F32, {32, 96}, {1, 32}},
                    dense(BufferKind::Output, 0, 0, DType::F32, {64, 32}),
                    dense(BufferKind::Output, 1, 0, DType::F32, {64}),
                    dense(BufferKind::Input, 2, 0, DType::F32, {}),
                    dense(BufferKind::Input, 3, 0, DType::F32, {64, 32}),
                    dense(BufferKind::Input, 4, 0, DType::F32, {64}),
                    dense(BufferKind::Input, 5, 0, DType::I64, {}),
                    dense(BufferKind::Output, 2, 0, DType::I64, {}),
                    dense(BufferKind::Arena, 0, 0, DType::U8, {1 << 20})};
  return bucket;
}

void expectDecodes(const GemmRecord &gemm, const Bucket &bucket) {
  const LaunchRecord record{encodeGemm(gemm)};
  SCOPED_TRACE(recordName(record));
  const std::optional<GemmRecord> decoded = decodeGemm(record, bucket);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->problem, gemm.problem);
  EXPECT_EQ(decoded->operands.x, gemm.operands.x);
  EXPECT_EQ(decoded->operands.bias, gemm.operands.bias);
  EXPECT_EQ(decoded->operands.residual, gemm.operands.residual);
  EXPECT_EQ(decoded->operands.xStatistics, gemm.operands.xStatistics);
  EXPECT_EQ(decoded->operands.yStatistics, gemm.operands.yStatistics);
  EXPECT_EQ(decoded->operands.xSums, gemm.operands.xSums);
  EXPECT_EQ(decoded->operands.oldWeight, gemm.operands.oldWeight);
  EXPECT_EQ(decoded->choice.index(), gemm.choice.index());
  // Nothing of the record is lost.
  EXPECT_EQ(encodeGemm(*decoded), record.op);
}

TEST(GemmRecord, ComesBackFromARecordOfEachCandidate) {
  for (const DType dtype : {DType::F16, DType::BF16}) {
    const Bucket bucket = bucketOf(dtype);
    for (GemmRecord gemm : {plainGemm(dtype), fullGemm(dtype), normGemm(dtype)})
      for (const auto &[arch, least] : {std::pair(Arch::Sm90a, 20), {Arch::Sm80, 6}}) {
        int kernels = 0;
        for (const GemmChoice &choice : gemmCandidates(gemm.problem, {arch, 132})) {
          if (fusedPart(gemm.problem, choice) != gemm.problem)
            continue;
          gemm.choice = choice;
          gemm.workspace = std::holds_alternative<GemmLibraryChoice>(choice) ? id(7) : kNoTensor;
          kernels += std::holds_alternative<GemmKernelChoice>(choice);
          expectDecodes(gemm, bucket);
        }
        EXPECT_GT(kernels, least);
      }
  }
}

TEST(GemmRecord, ComesBackFromTheKernelsInF32) {
  for (GemmRecord gemm : {smallGemm(), sgdGemm()}) {
    const auto choices = gemmCandidates(gemm.problem, {Arch::Sm90a, 132});
    EXPECT_EQ(choices.size(), 3u) << "each CTA has a step of 32 of K";
    for (const GemmChoice &choice : choices) {
      gemm.choice = choice;
      expectDecodes(gemm, smallBucket());
    }
  }
  // Without the optional operands.
  GemmRecord gemm = sgdGemm();
  gemm.problem.epilogue.xSums = false;
  gemm.operands.xSums = gemm.operands.oldBias = gemm.operands.step = gemm.operands.nextStep = {};
  expectDecodes(gemm, smallBucket());
}

/// Gradients of weights, whose results may be wider than their operands.
TEST(GemmRecord, ComesBackFromACallOfTransposedOperands) {
  GemmRecord gemm = smallGemm();
  gemm.problem.epilogue.xSums = false;
  gemm.operands.xSums.reset();
  gemm.choice = GemmLibraryChoice{};
  gemm.workspace = id(9);
  expectDecodes(gemm, smallBucket());
  Bucket halves = smallBucket();
  halves.tensors[0].dtype = halves.tensors[1].dtype = DType::BF16;
  gemm.problem.dtype = DType::BF16;
  gemm.problem.yDType = DType::F32;
  expectDecodes(gemm, halves);
}

TEST(GemmRecord, ComesBackFromACallWithItsAlgorithm) {
  GemmRecord relu = plainGemm(DType::F16);
  relu.problem.epilogue = {.bias = true, .activation = Activation::Relu};
  relu.operands.bias = id(2);
  expectDecodes(callOf(relu), bucketOf(DType::F16));
  GemmRecord tf32 = plainGemm(DType::F32);
  tf32.problem.tf32 = true;
  expectDecodes(callOf(tf32), bucketOf(DType::F32));
}

/// The check of each candidate's kernel accepts its launch.
TEST(GemmRecord, IsALaunchThatTheKernelTakes) {
  for (const auto &[m, k, arch] : {std::tuple(77, 1024, Arch::Sm90a),
                                   {1537, 1024, Arch::Sm90a},
                                   {1537, 72, Arch::Sm90a},
                                   {1537, 64, Arch::Sm90a},
                                   {77, 1024, Arch::Sm80},
                                   {1537, 72, Arch::Sm80}})
    for (const bool normalizes : {false, true}) {
      GemmProblem problem{.m = m, .n = kN, .k = k};
      if (normalizes)
        problem.epilogue.normEps = 1e-5;
      for (const GemmChoice &choice : gemmCandidates(problem, {arch, 132})) {
        const auto *kernel = std::get_if<GemmKernelChoice>(&choice);
        if (!kernel)
          continue;
        const KernelLaunch launch = gemmLaunch(problem, *kernel);
        const std::vector<int64_t> x = {m, k}, w = {kN, k}, y = {m, kN},
                                   statistics = {m, statisticsGroups(k), 2};
        const auto view = [](const std::vector<int64_t> &sizes, DType dtype = DType::F16) {
          return OperandView{dtype, sizes, {}, kBufferAlignment};
        };
        std::vector<OperandView> reads = {view(x), view(w), {}, {}}, writes = {view(y), {}};
        if (normalizes)
          reads[kGemmXStatistics] = view(statistics, DType::F32);
        const Kernel &row = kernel->kernel.row();
        EXPECT_EQ(launch.kernel, row.name);
        EXPECT_EQ(launch.abiHash, row.abiHash);
        EXPECT_EQ((row.traits & kHopper) != 0, arch == Arch::Sm90a) << row.name;
        EXPECT_EQ(kernel->kernel.tile->form == GemmForm::Norm, normalizes);
        const Status status = row.check({launch.grid, launch.block, launch.sharedBytes, reads,
                                         writes, launch.ints, launch.floats});
        EXPECT_TRUE(status.isOk()) << launch.kernel << ": " << status.message();
      }
    }
}

TEST(GemmRecord, OtherRecordsAreNone) {
  const Bucket bucket = bucketOf(DType::F16);
  EXPECT_FALSE(decodeGemm({Memcpy{id(0), id(0)}}, bucket));
  GemmRecord gemm = plainGemm(DType::F16);
  gemm.choice = gemmCandidates(gemm.problem, {Arch::Sm90a, 132}).front();
  auto launch = std::get<KernelLaunch>(encodeGemm(gemm));
  ASSERT_TRUE(decodeGemm({launch}, bucket));
  launch.kernel = "softmax_f16";
  EXPECT_FALSE(decodeGemm({launch}, bucket));
}

/// No kernel computes them, so that there is nothing to choose.

TEST(GemmKernel, IsItsRow) {
  size_t kernels = 0;
  for (const auto &tiles : {gemmTiles(), gemmNormTiles(), convTiles()})
    for (const GemmTile &tile : tiles)
      for (const DType dtype : {DType::F16, DType::BF16}) {
        const GemmKernel kernel{dtype, &tile};
        EXPECT_EQ(kernel.row().name, std::string(tile.form == GemmForm::Norm   ? "gemm_norm_"
                                                 : tile.form == GemmForm::Conv ? "conv_"
                                                                               : "gemm_") +
                                         std::string(dtypeName(dtype)) + "_" +
                                         std::string(tile.name));
        EXPECT_EQ(gemmKernelOf(kernel.row()), kernel);
        ++kernels;
      }
  for (const Kernel &row : cgc::kernels())
    kernels -= gemmKernelOf(row).has_value();
  EXPECT_EQ(kernels, 0u);
}

TEST(GemmProblem, HasATextThatDiffersForDifferentProblems) {
  EXPECT_EQ(describe(plainGemm(DType::F16).problem),
            "gemm f16 [1600,1024] x [256,1024] by 1032 at 16");
  EXPECT_EQ(describe(fullGemm(DType::BF16).problem),
            "gemm bf16 [1600,1024] x [256,1024] by 1032 at 16, bias, activation 1, residual "
            "[1600,256], row statistics");
  EXPECT_EQ(describe(normGemm(DType::F16).problem),
            "gemm_norm f16 [1600,1024] x [256,1024] by 1032 at 16, eps 1e-05");
  GemmProblem strided = plainGemm(DType::F32).problem;
  strided.y = {kN * 2, 64};
  strided.tf32 = true;
  EXPECT_EQ(describe(strided), "gemm f32 [1600,1024] x [256,1024] by 1032 at 16, to [1600,256] by "
                               "512 at 64, tf32");
  EXPECT_EQ(describe(sgdGemm().problem),
            "gemm f32 [64,96] transposed x [32,96] transposed, sums of "
            "x, sgd with weight decay 0.25");
  GemmProblem gradient = smallGemm().problem;
  gradient.dtype = DType::BF16;
  gradient.yDType = DType::F32;
  gradient.epilogue.xSums = false;
  gradient.w.stride = 40;
  EXPECT_EQ(describe(gradient),
            "gemm bf16 [64,96] transposed x [32,96] transposed by 40, to f32 [64,32]");
}

TEST(GemmCandidates, AreKernelsOnlyWhereTheyRun) {
  const auto ways = [](const GemmProblem &problem, Arch arch) {
    std::string text;
    for (const GemmChoice &choice : gemmCandidates(problem, {arch, 132})) {
      const char way = !std::holds_alternative<GemmLibraryChoice>(choice) ? 'K'
                       : fusedPart(problem, choice) == problem            ? 'L'
                                                                          : 'l'; // A part.
      if (!text.ends_with(way))
        text += way;
    }
    return text;
  };
  GemmProblem problem = plainGemm(DType::F16).problem;
  EXPECT_EQ(ways(problem, Arch::Sm90a), "KL");
  EXPECT_EQ(ways(problem, Arch::Sm80), "LK");
  problem.epilogue.activation = Activation::Gelu; // cuBLASLt's GELU is another one.
  EXPECT_EQ(ways(problem, Arch::Sm90a), "Kl");
  EXPECT_EQ(ways(problem, Arch::Sm80), "lK");
  problem.epilogue.activation = Activation::Relu;
  EXPECT_EQ(ways(problem, Arch::Sm90a), "KL");
  problem.epilogue.residual = true; // cuBLASLt would apply relu to it too.
  EXPECT_EQ(ways(problem, Arch::Sm90a), "Kl");
  EXPECT_EQ(ways(normGemm(DType::F16).problem, Arch::Sm90a), "K");
  EXPECT_EQ(ways(normGemm(DType::F16).problem, Arch::Sm80), "K");
  EXPECT_EQ(ways(plainGemm(DType::F32).problem, Arch::Sm90a), "L");
  problem = plainGemm(DType::F16).problem;
  problem.n = 260;
  EXPECT_EQ(ways(problem, Arch::Sm90a), "L");
  problem = plainGemm(DType::F16).problem;
  problem.m = 400000; // 1e11 multiplications.
  EXPECT_EQ(ways(problem, Arch::Sm90a), "LK");
  problem.epilogue.rowStatistics = true;
  EXPECT_EQ(ways(problem, Arch::Sm90a), "lK") << "a separate layer_norm costs less";
  problem.epilogue.activation = Activation::Gelu;
  EXPECT_EQ(ways(problem, Arch::Sm90a), "Kl");
  problem = plainGemm(DType::F16).problem;
  problem.w.transposed = true;
  EXPECT_EQ(ways(problem, Arch::Sm90a), "L");
  problem = plainGemm(DType::F16).problem;
  problem.yDType = DType::F32;
  EXPECT_EQ(ways(problem, Arch::Sm90a), "L");
  problem.epilogue.bias = true;
  EXPECT_EQ(ways(problem, Arch::Sm90a), "");
}

TEST(GemmCandidates, OfSmallGemmsInF32AreKernels) {
  const auto ways = [](const GemmProblem &problem, Arch arch = Arch::Sm90a) {
    std::string text;
    for (const GemmChoice &choice : gemmCandidates(problem, {arch, 132})) {
      const auto *kernel = std::get_if<GemmF32Choice>(&choice);
      text += kernel ? char('0' + kernel->splitK) : 'L';
    }
    return text;
  };
  GemmProblem problem = smallGemm().problem;
  EXPECT_EQ(ways(problem), "321") << "only kernels compute the sums";
  EXPECT_EQ(ways(problem, Arch::Sm80), "");
  problem.epilogue = {};
  EXPECT_EQ(ways(problem), "321L");
  EXPECT_EQ(ways(problem, Arch::Sm80), "L");
  problem.tf32 = true;
  EXPECT_EQ(ways(problem), "L");
  problem.tf32 = false;
  problem.m = problem.n = 1024; // 256 tiles: the SMs hold no clusters of more CTAs.
  EXPECT_EQ(ways(problem), "123L");
  problem.k = 128;
  EXPECT_EQ(ways(problem), "L");
  problem = sgdGemm().problem;
  EXPECT_EQ(ways(problem), "321");
  problem.epilogue.xSums = false;
  EXPECT_EQ(ways(problem), "321");
}

} // namespace
} // namespace cgc::backend

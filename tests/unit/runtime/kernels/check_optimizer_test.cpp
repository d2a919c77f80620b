// Checks of kernels that take groups of tensors, and of uniform, refuse launches that would access
// memory outside their tensors; Philox. Needs no GPU.
#include "runtime/base/philox.h"
#include "runtime/kernels/optimizer/gradient_norm.h"
#include "runtime/kernels/optimizer/sgd.h"
#include "runtime/kernels/random/uniform.h"
#include "tests/unit/runtime/kernels/check_launch.h"

namespace cgc::test {
namespace {

Tensor ofF32(std::vector<int64_t> sizes) {
  return {kAddress, std::move(sizes), {}, DType::F32};
}

/// A launch of an optimizer with two groups, of 3 chunks and 1 chunk. The last f32 tensors of
/// groups are absent without `hasLast`. There are copies in bf16.
Launch optimizer(const std::string &kernel, std::vector<double> floats, bool hasLast = true) {
  const Kernel &row = *findKernel(kernel);
  Launch launch = {.kernel = kernel,
                   .grid = {4, 1, 1},
                   .block = {kGroupThreads, 1, 1},
                   .sharedBytes = 0,
                   .reads = {ofF32({}),
                             {kAddress, {}, {}, DType::I64},
                             ofF32({1}),
                             {kAddress, {}, {}, DType::Bool}},
                   .ints = {0},
                   .floats = std::move(floats)};
  for (const std::vector<int64_t> &sizes : {std::vector<int64_t>{2, 4097}, {}}) {
    launch.reads.resize(launch.reads.size() + row.groupReads(), ofF32(sizes));
    launch.writes.resize(launch.writes.size() + row.groupWrites() - 1, ofF32(sizes));
    if (!hasLast)
      launch.reads.back() = launch.writes.back() = {};
    launch.writes.push_back({kAddress, sizes, {}, DType::BF16});
  }
  return launch;
}

const std::string kGroup0 = "the tensors of group 0 have to be", kGroup1 = "of group 1 have to be",
                  kCopies = "the copies of all groups have to be",
                  kGroupGrid = "the grid has to be";

/// What every optimizer refuses. `reads` are those of a group.
void expectOptimizerRefusals(const Launch &good, size_t reads) {
  const std::string numbers = "lr, and the scale if there is one", step = "the step has to be",
                    skip = "skip has to be";
  expectRefusals(good, {{[](Launch &l) { l.reads[0] = {}; }, numbers},
                        {[](Launch &l) { l.reads[0].sizes = {2}; }, numbers},
                        {[](Launch &l) { l.reads[0].dtype = DType::F64; }, numbers},
                        {[](Launch &l) { l.reads[2].dtype = DType::F16; }, numbers},
                        {[](Launch &l) { l.reads[1] = {}; }, step},
                        {[](Launch &l) { l.reads[1].dtype = DType::I32; }, step},
                        {[](Launch &l) { l.reads[3].dtype = DType::U8; }, skip},
                        {[](Launch &l) { l.reads[3].sizes = {0}; }, skip},
                        {[](Launch &l) { l.reads[4].sizes = {8195}; }, kGroup0},
                        {[](Launch &l) { l.reads[5].sizes = {8193}; }, kGroup0},
                        {[](Launch &l) { l.reads[5].dtype = DType::F16; }, kGroup0},
                        {[](Launch &l) { l.reads[5].strides = {1, 2}; }, kGroup0},
                        {[](Launch &l) { l.writes[0].sizes = {8193}; }, kGroup0},
                        {[](Launch &l) { l.writes[0] = {}; }, kGroup0},
                        {[reads](Launch &l) { l.reads[4 + reads].sizes = {0}; }, kGroup1},
                        {[reads](Launch &l) { l.reads[4 + reads + 1].sizes = {2}; }, kGroup1},
                        {[](Launch &l) { l.writes.end()[-2].sizes = {2}; }, kGroup1},
                        {[](Launch &l) { l.writes.back().sizes = {2}; }, kCopies},
                        {[](Launch &l) { l.writes.back().dtype = DType::F16; }, kCopies},
                        {[](Launch &l) { l.writes.back() = {}; }, kCopies},
                        {[reads](Launch &l) { l.writes[reads - 1].dtype = DType::F32; }, kCopies},
                        {[reads](Launch &l) { l.writes[reads - 1].strides = {1, 2}; }, kCopies},
                        {[](Launch &l) { l.grid[0] = 5; }, kGroupGrid},
                        {[](Launch &l) { l.grid[1] = 2; }, kGroupGrid},
                        {[](Launch &l) { l.block[0] = 128; }, kGroupGrid},
                        {[](Launch &l) { l.sharedBytes = 16; }, kGroupGrid}});
  for (const std::function<void(Launch &)> &change :
       std::initializer_list<std::function<void(Launch &)>>{
           [](Launch &l) { l.grid[0] = 1; }, [](Launch &l) { l.reads[2] = l.reads[3] = {}; },
           [](Launch &l) { l.reads[5].sizes = {8194}; }, [](Launch &l) { l.reads[5].address += 4; },
           [](Launch &l) { l.writes.back().address += 2; },
           [reads](Launch &l) { l.writes[reads - 1] = l.writes.back() = {}; },
           [reads](Launch &l) {
             l.writes[reads - 1].dtype = l.writes.back().dtype = DType::F16;
           }}) {
    Launch other = good;
    change(other);
    expectTaken(other);
  }
}

TEST(CheckAdam, Refuses) {
  const Launch good = optimizer("adam_f32", {0.9, 0.999, 1e-8, 0});
  expectOptimizerRefusals(good, 4);
  expectRefused(good, [](Launch &l) { l.reads[7] = {}; }, kGroup0);
}

TEST(CheckSgd, Refuses) {
  const Launch good = optimizer("sgd_f32", {0.9, 0, 0});
  expectOptimizerRefusals(good, 3);
  expectRefused(good, [](Launch &l) { l.reads[6] = {}; }, kGroup0);
  expectRefused(good, [](Launch &l) { l.writes[4] = {}; }, kGroup1);
}

/// Momenta are there with a momentum, and only then.
TEST(CheckSgd, TakesMomentaWithAMomentumOnly) {
  const Launch good = optimizer("sgd_f32", {0, 0, 0}, /*hasLast=*/false);
  expectTaken(good);
  expectRefused(good, [](Launch &l) { l.floats[0] = 0.9; }, kGroup0);
  expectRefused(good, [](Launch &l) { l.reads[6] = l.reads[5]; }, kGroup0);
  expectRefused(good, [](Launch &l) { l.writes[1] = l.writes[0]; }, kGroup0);
}

TEST(CheckEma, Refuses) {
  const Launch good = {.kernel = "ema_f32",
                       .grid = {4, 1, 1},
                       .block = {kGroupThreads, 1, 1},
                       .sharedBytes = 0,
                       .reads = {{kAddress, {}, {}, DType::Bool},
                                 ofF32({2, 4097}),
                                 ofF32({8194}),
                                 ofF32({}),
                                 ofF32({})},
                       .writes = {ofF32({2, 4097}), ofF32({})},
                       .floats = {0.5}};
  expectTaken(good);
  Launch withoutSkip = good;
  withoutSkip.reads[0] = {};
  expectTaken(withoutSkip);
  expectRefusals(good, {{[](Launch &l) { l.reads[0].dtype = DType::U8; }, "skip has to be"},
                        {[](Launch &l) { l.reads[0].sizes = {2}; }, "skip has to be"},
                        {[](Launch &l) { l.reads[1].sizes = {8195}; }, kGroup0},
                        {[](Launch &l) { l.reads[2].dtype = DType::F16; }, kGroup0},
                        {[](Launch &l) { l.reads[2] = {}; }, kGroup0},
                        {[](Launch &l) { l.writes[1].sizes = {2}; }, kGroup1},
                        {[](Launch &l) { l.grid[0] = 5; }, kGroupGrid}});
}

TEST(TensorGroups, ALaunchHas1To256Groups) {
  const Kernel &adam = *findKernel("adam_f32"), &sums = *findKernel("square_sums_f32");
  const auto takes = [](const Kernel &kernel, size_t reads, size_t writes) {
    Launch launch;
    launch.reads.resize(reads);
    launch.writes.resize(writes);
    launch.ints.resize(kernel.ints);
    launch.floats.resize(kernel.floats);
    return kernel.takesCountsOf(launch);
  };
  EXPECT_TRUE(takes(adam, 4 + 4, 4));
  EXPECT_TRUE(takes(adam, 4 + 4 * 256, 4 * 256));
  EXPECT_FALSE(takes(adam, 4 + 4 * 257, 4 * 257));
  EXPECT_FALSE(takes(adam, 4, 0));
  EXPECT_FALSE(takes(adam, 0, 0));
  EXPECT_FALSE(takes(adam, 4 + 4 * 2, 4));
  EXPECT_FALSE(takes(adam, 4 + 4 * 2 + 1, 4 * 2));
  EXPECT_TRUE(takes(sums, 256, 1));
  EXPECT_FALSE(takes(sums, 257, 1));
  EXPECT_FALSE(takes(sums, 2, 2));
  EXPECT_FALSE(takes(*findKernel("copy"), 2, 2));
}

TEST(TensorGroups, AGroupMayOverwriteWhatItReadsItself) {
  const Kernel &adam = *findKernel("adam_f32");
  EXPECT_TRUE(adam.mayOverwrite(0, 4));
  EXPECT_TRUE(adam.mayOverwrite(2, 7));
  EXPECT_TRUE(adam.mayOverwrite(4, 8));
  EXPECT_FALSE(adam.mayOverwrite(0, 0)); // lr.
  EXPECT_FALSE(adam.mayOverwrite(0, 8)); // The next group's parameter.
  EXPECT_FALSE(adam.mayOverwrite(4, 7));
  EXPECT_FALSE(findKernel("copy")->mayOverwrite(0, 0));
  EXPECT_FALSE(findKernel("square_sums_f32")->mayOverwrite(0, 0));
}

/// Chunks of 2^31 - 1 are taken, one more is refused.
TEST(TensorGroups, HasFewerThan2To31Chunks) {
  const auto launch = [](int64_t chunks) {
    Launch l = optimizer("sgd_f32", {0, 0, 0}, /*hasLast=*/false);
    for (Tensor *tensor : {&l.reads[4], &l.reads[5], &l.writes[0], &l.writes[2]})
      tensor->sizes = {(chunks - 1) * int64_t(kGroupChunk)};
    return l;
  };
  expectTaken(launch(INT32_MAX));
  expectRefused(launch(int64_t(INT32_MAX) + 1), [](Launch &) {}, kGroupGrid);
}

TEST(CheckSquareSums, Refuses) {
  const Launch good = {.kernel = "square_sums_f32",
                       .grid = {4, 1, 1},
                       .block = {kGroupThreads, 1, 1},
                       .sharedBytes = 0,
                       .reads = {ofF32({2, 4097}), ofF32({})},
                       .writes = {ofF32({4})}};
  expectRefusals(good, {{[](Launch &l) { l.reads[0].dtype = DType::BF16; }, kGroup0},
                        {[](Launch &l) { l.reads[1].sizes = {0}; }, kGroup1},
                        {[](Launch &l) { l.writes[0].sizes = {3}; }, "the sums have to be"},
                        {[](Launch &l) { l.writes[0].strides = {2}; }, "the sums have to be"},
                        {[](Launch &l) { l.grid[0] = 5; }, kGroupGrid}});
}

TEST(CheckGradientNorm, Refuses) {
  const Launch good = {.kernel = "gradient_norm_f32",
                       .grid = {1, 1, 1},
                       .block = {kNormThreads, 1, 1},
                       .sharedBytes = 0,
                       .reads = {ofF32({4})},
                       .writes = {ofF32({})}};
  expectRefusals(good, {{[](Launch &l) { l.reads[0].strides = {2}; }, "the sums have to be"},
                        {[](Launch &l) { l.writes[0].sizes = {2}; }, "the norm has to be"},
                        {[](Launch &l) { l.writes[0].dtype = DType::F64; }, "the norm has to be"},
                        {[](Launch &l) { l.grid[0] = 2; }, kGroupGrid},
                        {[](Launch &l) { l.block[0] = 256; }, kGroupGrid}});
}

TEST(CheckUniform, Refuses) {
  const Tensor number = {kAddress, {}, {}, DType::I64};
  const Launch good = {.kernel = "uniform_f32",
                       .grid = {3, 1, 1},
                       .block = {kUniformThreads, 1, 1},
                       .sharedBytes = 0,
                       .reads = {number, number},
                       .writes = {ofF32({3, 700})},
                       .ints = {UINT32_MAX}};
  const std::string numbers = "seed and offset have to be", y = "y has to be dense";
  expectRefusals(good,
                 {{[](Launch &l) { l.reads[0].dtype = DType::I32; }, numbers},
                  {[](Launch &l) { l.reads[1] = {}; }, numbers},
                  {[](Launch &l) { l.writes[0].dtype = DType::F16; }, y},
                  {[](Launch &l) { l.writes[0].strides = {1, 3}; }, y},
                  {[](Launch &l) { l.writes[0].sizes = {(int64_t(4) << 32) + 1}; }, "at most 2^34"},
                  {[](Launch &l) { l.ints[0] = -1; }, "the stream has to be"},
                  {[](Launch &l) { ++l.ints[0]; }, "the stream has to be"},
                  {[](Launch &l) { l.grid[0] = kUniformMaxBlocks + 1; }, kGroupGrid},
                  {[](Launch &l) { l.block[0] = 128; }, kGroupGrid}});
}

TEST(CheckDropout, Refuses) {
  for (const auto &[name, dtype] : {std::pair("dropout_f32", DType::F32),
                                    {"dropout_f16", DType::F16},
                                    {"dropout_bf16", DType::BF16}}) {
    const Tensor number = {kAddress, {}, {}, DType::I64}, tensor = {kAddress, {3, 700}, {}, dtype};
    const Launch good = {.kernel = name,
                         .grid = {3, 1, 1},
                         .block = {kUniformThreads, 1, 1},
                         .sharedBytes = 0,
                         .reads = {number, number, tensor},
                         .writes = {tensor},
                         .ints = {0},
                         .floats = {0.5}};
    const std::string tensors = "x and y have to be dense", p = "p has to be from 0 to below 1";
    expectRefusals(good, {{[](Launch &l) { l.reads[1].dtype = DType::I32; }, "seed and offset"},
                          {[](Launch &l) { l.reads[2].dtype = DType::F64; }, tensors},
                          {[](Launch &l) { l.reads[2].sizes = {3, 701}; }, tensors},
                          {[](Launch &l) { l.reads[2].strides = {1, 3}; }, tensors},
                          {[](Launch &l) { l.reads[2] = {}; }, tensors},
                          {[](Launch &l) { l.writes[0].dtype = DType::F64; }, tensors},
                          {[](Launch &l) { l.writes[0].strides = {1, 3}; }, tensors},
                          {[](Launch &l) { l.floats[0] = 1; }, p},
                          {[](Launch &l) { l.floats[0] = -0.5; }, p},
                          {[](Launch &l) { l.floats[0] = NAN; }, p},
                          {[](Launch &l) { l.ints[0] = -1; }, "the stream has to be"},
                          {[](Launch &l) { l.block[0] = 128; }, kGroupGrid}});
  }
}

/// The known answers of Random123 for philox4x32-10.
TEST(Philox, HasTheKnownAnswers) {
  struct Answer {
    PhiloxWords counter;
    uint32_t key[2];
    PhiloxWords words;
  };
  const Answer answers[] = {
      {{{0, 0, 0, 0}}, {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
       {0xffffffff, 0xffffffff},
       {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       {0xa4093822, 0x299f31d0},
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}}};
  for (const Answer &answer : answers)
    EXPECT_THAT(philox(answer.counter, answer.key[0], answer.key[1]).words,
                testing::ElementsAreArray(answer.words.words));
  EXPECT_THAT(uniformWords(0x243f6a88, 0x85a308d3, 0x299f31d0a4093822, 0x0370734413198a2e).words,
              testing::ElementsAreArray(answers[2].words.words));
}

} // namespace
} // namespace cgc::test

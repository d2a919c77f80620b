// Checks of gemm_f32_* and gemm_sgd_f32_* refuse launches that would access memory outside their
// tensors. Needs no GPU.
#include "runtime/kernels/gemm/gemm_f32.h"
#include "tests/unit/runtime/kernels/check_launch.h"

namespace cgc::test {
namespace {

constexpr int64_t kF32M = 72, kF32N = 136, kF32K = 100;

/// a [M, K] with dense rows, b [N, K] with dense columns.
Launch gemmF32(int64_t split) {
  return {.kernel = "gemm_f32_" + std::to_string(split),
          .grid = {uint32_t(3 * split), 2, 1},
          .block = {kGemmF32Threads, 1, 1},
          .sharedBytes = kGemmF32SharedBytes,
          .reads = {{kAddress, {kF32M, kF32K}, {104, 1}, DType::F32},
                    {kAddress, {kF32N, kF32K}, {1, 136}, DType::F32},
                    {kAddress, {kF32N}, {}, DType::F32}},
          .writes = {{kAddress, {kF32M, kF32N}, {140, 1}, DType::F32},
                     {kAddress, {kF32M}, {}, DType::F32}},
          .ints = {kF32M, kF32N, kF32K}};
}

TEST(CheckGemmF32, RefusesSizesAndLaunchShapes) {
  const std::string sizes = "m, n and k have to be positive", shape = "the grid has to be";
  for (const int64_t split : kGemmF32Splits) {
    std::vector<Refusal> refusals = {{[](Launch &l) { l.ints[1] = 134; }, sizes},
                                     {[](Launch &l) { l.sharedBytes -= 16; }, shape}};
    for (int i = 0; i < 3; ++i) {
      for (const int64_t bad : {int64_t(0), int64_t(-8), int64_t(1) << 31, INT64_MIN})
        refusals.push_back({[=](Launch &l) { l.ints[i] = bad; }, sizes});
      refusals.push_back({[=](Launch &l) { ++l.grid[i]; }, shape});
      refusals.push_back({[=](Launch &l) { --l.grid[i]; }, shape});
      refusals.push_back({[=](Launch &l) { l.block[i] *= 2; }, shape});
    }
    expectRefusals(gemmF32(split), refusals);
  }
}

TEST(CheckGemmF32, RefusesTensors) {
  const std::string operands = "a has to be f32[m, k] and b f32[n, k]",
                    bias = "the bias has to be dense", y = "y has to be f32[m, n]",
                    sums = "the sums have to be dense";
  std::vector<Refusal> refusals = {
      {[](Launch &l) { l.reads[0].strides = {102, 1}; }, operands}, // No multiple of 16 bytes.
      {[](Launch &l) { l.reads[0].strides = {96, 1}; }, operands},  // Rows overlap.
      {[](Launch &l) { l.reads[0].strides = {104, 2}; }, operands}, // Neither is dense.
      {[](Launch &l) { l.reads[1].strides = {1, 132}; }, operands}, // Columns overlap.
      {[](Launch &l) { l.writes[0].strides = {1, 72}; }, y},        // Dense columns.
      {[](Launch &l) { l.writes[0].strides = {138, 1}; }, y},
      {[](Launch &l) { l.reads[2].strides = {2}; }, bias},
      {[](Launch &l) { l.writes[1].strides = {2}; }, sums},
      {[](Launch &l) { l.ints[2] = kF32K - 4; }, operands},
  };
  const std::pair<std::function<Tensor &(Launch &)>, std::string> tensors[] = {
      {[](Launch &l) -> Tensor & { return l.reads[0]; }, operands},
      {[](Launch &l) -> Tensor & { return l.reads[1]; }, operands},
      {[](Launch &l) -> Tensor & { return l.reads[2]; }, bias},
      {[](Launch &l) -> Tensor & { return l.writes[0]; }, y},
      {[](Launch &l) -> Tensor & { return l.writes[1]; }, sums}};
  for (const auto &[tensor, why] : tensors) {
    refusals.push_back({[tensor](Launch &l) { tensor(l).dtype = DType::BF16; }, why});
    refusals.push_back({[tensor](Launch &l) { ++tensor(l).sizes[0]; }, why});
    refusals.push_back({[tensor](Launch &l) { --tensor(l).sizes.back(); }, why});
    if (why != sums)
      refusals.push_back({[tensor](Launch &l) { tensor(l).address += 4; }, why});
  }
  expectRefusals(gemmF32(1), refusals);
  for (const auto &absent :
       {+[](Launch &l) { l.reads[2] = {}; }, +[](Launch &l) { l.writes[1] = {}; }}) {
    Launch launch = gemmF32(4);
    absent(launch);
    expectTaken(launch);
  }
}

/// Vectors are read along the dense dimension, which has to be a multiple of 4.
TEST(CheckGemmF32, TakesOddSizesOfStridedDimensions) {
  Launch launch = gemmF32(1);
  launch.ints[0] = launch.reads[0].sizes[0] = launch.writes[0].sizes[0] =
      launch.writes[1].sizes[0] = 71;
  expectTaken(launch);
  launch.reads[0].strides = {1, 72};
  expectRefused(launch, [](Launch &) {}, "dense, of multiples of 4 elements");
}

Launch gemmSgdF32(int64_t split) {
  Launch launch = gemmF32(split);
  const Tensor weight{kAddress, {kF32M, kF32N}, {}, DType::F32},
      bias{kAddress, {kF32M}, {}, DType::F32}, number{kAddress, {}, {}, DType::I64};
  launch.kernel = "gemm_sgd_f32_" + std::to_string(split);
  launch.reads[2] = {kAddress, {}, {}, DType::F32}; // lr.
  launch.reads.insert(launch.reads.end(), {weight, bias, number});
  launch.writes = {weight, bias, number};
  launch.floats = {0};
  return launch;
}

TEST(CheckGemmSgdF32, Refuses) {
  const std::string lr = "lr has to be f32[1]", weights = "the weights have to be dense",
                    biases = "the biases have to be dense", y = "y has to be f32[m, n]",
                    steps = "the numbers of steps have to be i64[1]";
  std::vector<Refusal> refusals = {
      {[](Launch &l) { l.ints[1] = 134; }, "m, n and k have to be positive"},
      {[](Launch &l) { ++l.grid[0]; }, "the grid has to be"},
      {[](Launch &l) { l.reads[0].sizes[0] = kF32M - 8; }, "a has to be f32[m, k]"},
      {[](Launch &l) { l.reads[3].strides = {140, 1}; }, weights},
      {[](Launch &l) { l.writes[0].strides = {140, 1}; }, weights},
      {[](Launch &l) { l.reads[3].address += 4; }, weights},
      {[](Launch &l) { l.writes[0].address += 4; }, y},
      {[](Launch &l) { l.writes[1] = {}; }, biases}, // One of the two.
      {[](Launch &l) { l.reads[4] = {}; }, biases},
      {[](Launch &l) { l.writes[2] = {}; }, steps},
      {[](Launch &l) { l.reads[5] = {}; }, steps},
      {[](Launch &l) { // A second group.
         l.reads.insert(l.reads.end(), l.reads.begin() + 3, l.reads.begin() + 6);
         l.writes.insert(l.writes.end(), l.writes.begin(), l.writes.begin() + 3);
       },
       "there has to be one group"},
  };
  const std::pair<std::function<Tensor &(Launch &)>, std::string> tensors[] = {
      {[](Launch &l) -> Tensor & { return l.reads[2]; }, lr},
      {[](Launch &l) -> Tensor & { return l.reads[3]; }, weights},
      {[](Launch &l) -> Tensor & { return l.reads[4]; }, biases},
      {[](Launch &l) -> Tensor & { return l.reads[5]; }, steps},
      {[](Launch &l) -> Tensor & { return l.writes[1]; }, biases},
      {[](Launch &l) -> Tensor & { return l.writes[2]; }, steps}};
  for (const auto &[tensor, why] : tensors) {
    refusals.push_back({[tensor](Launch &l) { tensor(l).dtype = DType::BF16; }, why});
    refusals.push_back(
        {[tensor](Launch &l) { tensor(l).sizes.insert(tensor(l).sizes.begin(), 2); }, why});
  }
  for (const int64_t split : kGemmF32Splits)
    expectRefusals(gemmSgdF32(split), refusals);
  Launch launch = gemmSgdF32(3); // Without a bias and a number of steps.
  launch.reads[4] = launch.reads[5] = launch.writes[1] = launch.writes[2] = {};
  expectTaken(launch);
}

/// The new weight may be where the old one is, but nothing may be where the operands are.
TEST(CheckGemmSgdF32, OverwritesWhatItReplaces) {
  const Kernel &kernel = *findKernel("gemm_sgd_f32_1");
  for (size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(kernel.mayOverwrite(i, kGemmSgdWeight + i));
  EXPECT_FALSE(kernel.mayOverwrite(kGemmSgdNewWeight, kGemmSgdA));
  EXPECT_FALSE(kernel.mayOverwrite(kGemmSgdNewWeight, kGemmSgdB));
  EXPECT_FALSE(kernel.mayOverwrite(kGemmSgdNewBias, kGemmSgdLr));
}

} // namespace
} // namespace cgc::test

// A small CLIP text tower, from lowering to replays: all records are kernels, texts do not
// influence each other, and the executors of a GPU give bit-equal results.
#include "tests/device/text_tower.h"

#include <cmath>

namespace cgc::test {
namespace {

TEST(TextTowerLowering, IsKernelsAndTheLibrarysGemms) {
  for (const backend::Arch arch : {backend::Arch::Sm90a, backend::Arch::Sm80}) {
    const auto tower = textTower(arch);
    ASSERT_TRUE(tower.isOk()) << tower.status().message();
    ASSERT_TRUE(validate(tower->plan).isOk()) << validate(tower->plan).message();
    ASSERT_EQ(tower->plan.entries[0].buckets.size(), std::size(kBatches));
    const bool isHopper = arch == backend::Arch::Sm90a;
    for (const Bucket &bucket : tower->plan.entries[0].buckets)
      for (const LaunchRecord &record : bucket.records)
        EXPECT_TRUE(isHopper ? std::holds_alternative<KernelLaunch>(record.op)
                             : !std::holds_alternative<AtenCall>(record.op))
            << recordName(record);
    // The embedding, two layers of five kernels, argmax, rows, the norm, the projection, normalize.
    if (isHopper) {
      EXPECT_EQ(tower->plan.entries[0].buckets[0].records.size(), 16u);
    }
  }
}

class TextTower : public ExecutorTest {
protected:
  /// The architectures whose plans the executor runs.
  static std::vector<backend::Arch> archs() {
    if (isReference())
      return {backend::Arch::Sm90a, backend::Arch::Sm80};
    return {archHere()};
  }
};
CGC_ON_ALL_EXECUTORS(TextTower);

/// Kernels of different batches have different launches and memory plans.
TEST_P(TextTower, FeaturesOfATextDoNotDependOnItsBatch) {
  for (const backend::Arch arch : archs()) {
    SCOPED_TRACE(arch == backend::Arch::Sm90a ? "sm_90a" : "sm_80");
    const auto tower = textTower(arch);
    ASSERT_TRUE(tower.isOk()) << tower.status().message();
    load(*tower);
    Context context = this->context(GetParam(), /*poison=*/true);
    std::mt19937 random(1);
    std::vector<int64_t> ids = randomIds(4, random);
    const std::vector<double> together = decodeAll(DType::F16, features(context, ids));
    for (int64_t text = 0; text < 4; ++text) {
      std::vector<int64_t> own(ids.begin() + text * kContext, ids.begin() + (text + 1) * kContext);
      const std::vector<double> alone = decodeAll(DType::F16, features(context, own));
      double squares = 0, differences = 0, toOther = 0;
      for (int64_t i = 0; i < kEmbedding; ++i) {
        const double inBatch = together[text * kEmbedding + i];
        squares += alone[i] * alone[i];
        differences += std::pow(alone[i] - inBatch, 2);
        toOther += std::pow(alone[i] - together[(text + 1) % 4 * kEmbedding + i], 2);
      }
      EXPECT_NEAR(squares, 1, 0.01) << "text " << text; // False for NaN.
      EXPECT_LE(differences, 1e-5) << "text " << text;
      EXPECT_GE(toOther, 1e-3) << "text " << text << " has the features of the next one";
    }
  }
}

class TextTowerReplays : public CudaTest {};

TEST_F(TextTowerReplays, AreBitEqualToStreamRunsAndAllocateNothing) {
  const auto tower = textTower(archHere());
  ASSERT_TRUE(tower.isOk()) << tower.status().message();
  load(*tower);
  Context stream = context(ExecutorKind::Stream), graph = context(ExecutorKind::Graph);
  std::mt19937 random(1);
  size_t before = 0, after = 0, total = 0;
  for (int i = 0; i < 60; ++i) {
    std::vector<int64_t> ids = randomIds(kBatches[i % std::size(kBatches)], random);
    const std::vector<std::byte> a = features(stream, ids), b = features(graph, ids);
    ASSERT_EQ(a, b) << "replay " << i;
    for (size_t row = 0; row < a.size(); row += kEmbedding * 2) {
      double squares = 0;
      for (int64_t column = 0; column < kEmbedding; ++column)
        squares += std::pow(decode(DType::F16, a.data() + row, column), 2);
      ASSERT_NEAR(squares, 1, 0.01) << "replay " << i; // False for NaN.
    }
    ASSERT_EQ(cudaMemGetInfo(i == 10 ? &before : &after, &total), cudaSuccess);
  }
  EXPECT_EQ(before, after) << "device memory changed while replaying";
}

/// More sets of device tensors than a bucket keeps executables for, at several alignments.
TEST_F(TextTowerReplays, OnDeviceTensorsAreBitEqualToThoseThatCopy) {
  const auto tower = textTower(archHere());
  ASSERT_TRUE(tower.isOk()) << tower.status().message();
  load(*tower);
  Context copying = context(ExecutorKind::Stream), inPlace = context(ExecutorKind::Graph);
  std::mt19937 random(1);
  constexpr size_t kSlots = 6, kSlot = 64 << 10;
  std::byte *memory = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void **>(&memory), 2 * kSlots * kSlot), cudaSuccess);
  for (size_t i = 0; i < 40; ++i) {
    const int64_t batch = kBatches[i % std::size(kBatches)];
    std::vector<int64_t> ids = randomIds(batch, random);
    const std::vector<int64_t> inSizes = {batch, kContext}, outSizes = {batch, kEmbedding};
    std::byte *const x = memory + 2 * (i % kSlots) * kSlot + 16 * (i % 3), *const y = x + kSlot;
    std::vector<std::byte> result(batch * kEmbedding * 2);
    ASSERT_LE(std::max(ids.size() * sizeof(int64_t), result.size()) + 32, kSlot);
    ASSERT_EQ(cudaMemcpy(x, ids.data(), ids.size() * sizeof(int64_t), cudaMemcpyHostToDevice),
              cudaSuccess);
    const TensorView in{x, DType::I64, DeviceKind::Cuda, inSizes, {}},
        out{y, DType::F16, DeviceKind::Cuda, outSizes, {}};
    const Status status = inPlace.run("main", {&in, 1}, {&out, 1});
    ASSERT_TRUE(status.isOk()) << status.message();
    ASSERT_EQ(cudaMemcpy(result.data(), y, result.size(), cudaMemcpyDeviceToHost), cudaSuccess);
    ASSERT_EQ(result, features(copying, ids)) << "run " << i;
  }
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

} // namespace
} // namespace cgc::test

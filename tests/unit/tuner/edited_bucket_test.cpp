// GemmSite and EditedBucket: GEMMs of a plan are recognized, described, and replaced by either kind
// of record and back.
#include "runtime/kernels/kernel_table.h"
#include "runtime/plan/plan_file.h"
#include "tests/unit/tuner/gemm_chain.h"
#include "tuner/edited_bucket.h"
#include "tuner/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::test {
namespace {

using testing::HasSubstr;
using namespace cgc::tuner;

constexpr int64_t kWorkspaceBytes = 1 << 20;
constexpr const char *kFc1 = "gemm f16 [77,256] x [1024,256], bias, activation 1",
                     *kFc2 = "gemm f16 [77,1024] x [256,1024], bias, residual [77,256]";

PlanData chain(MadeOf made, DType dtype = DType::F16) {
  return gemmChain(dtype, made, [](int, int64_t) { return std::vector<std::byte>(); }).plan;
}

Choice algorithm() {
  return {std::vector<std::byte>(80, std::byte{7}), "some algorithm"};
}
Choice tile(int64_t n, int64_t k) {
  return {backend::tileChoices(gemmTiles(), kM, n, k, 132).front(), "some tile"};
}

TEST(EditedBucket, CountsGemmsByWhatTheyAre) {
  const EditedBucket tiles(chain(MadeOf::Tiles).entries[0].buckets[0], kWorkspaceBytes);
  EXPECT_EQ(tiles.count(kFc1), 3u);
  EXPECT_EQ(tiles.count(kFc2), 3u);
  EXPECT_EQ(tiles.count("f16"), 0u);
  // With less alignment it is another kind of GEMM, because an algorithm of cuBLASLt may not
  // support it.
  Bucket shifted = chain(MadeOf::Tiles).entries[0].buckets[0];
  shifted.tensors[uint32_t(recordReads(shifted.records[0])[0])].slot.offset += 48;
  const EditedBucket other(shifted, kWorkspaceBytes);
  EXPECT_EQ(other.count(kFc1), 2u);
  EXPECT_EQ(other.count("gemm f16 [77,256] at 16 x [1024,256], bias, activation 1"), 1u);
  const EditedBucket calls(chain(MadeOf::Calls).entries[0].buckets[0], kWorkspaceBytes);
  EXPECT_EQ(calls.count("gemm f16 [77,256] x [1024,256], bias, activation 5"), 3u);
  EXPECT_EQ(calls.count(kFc2), 3u);
}

TEST(EditedBucket, ATileBecomesACallWithAWorkspaceBehindTheArena) {
  PlanData plan = chain(MadeOf::Tiles);
  Bucket &bucket = plan.entries[0].buckets[0];
  const uint64_t arena = bucket.arenaBytes;
  EditedBucket edited(bucket, kWorkspaceBytes);
  edited.setRecords(edited.recordsWith(kFc2, algorithm()));
  EXPECT_EQ(edited.count(kFc2), 3u) << "it is the same GEMM";
  const Bucket before = bucket;
  bucket = std::move(edited).take();
  EXPECT_TRUE(validate(plan).isOk()) << validate(plan).message();
  EXPECT_EQ(bucket.arenaBytes, (arena + 255) / 256 * 256 + kWorkspaceBytes);
  for (size_t i = 0; i < bucket.records.size(); ++i) {
    const LaunchRecord &record = bucket.records[i];
    if (i % 2 == 0) {
      EXPECT_EQ(record, before.records[i]) << "another GEMM";
      continue;
    }
    const auto &call = std::get<LibraryCall>(record.op);
    EXPECT_EQ(call.reads, std::get<KernelLaunch>(before.records[i].op).reads);
    EXPECT_EQ(call.algorithm.size(), 80u);
    const TensorRef &workspace = bucket.tensors[uint32_t(call.writes[1])];
    EXPECT_GE(workspace.slot.offset, arena);
    EXPECT_EQ(record.location, before.records[i].location);
  }
}

TEST(EditedBucket, WithoutANewCallTheArenaStaysAsItWas) {
  PlanData plan = chain(MadeOf::Tiles);
  Bucket &bucket = plan.entries[0].buckets[0];
  EditedBucket edited(bucket, kWorkspaceBytes);
  edited.setRecords(edited.recordsWith(kFc2, algorithm()));
  edited.setRecords(edited.recordsWith(kFc2, tile(kNarrow, kWide)));
  const Bucket after = std::move(edited).take();
  EXPECT_EQ(after.arenaBytes, bucket.arenaBytes);
  EXPECT_EQ(after.tensors, bucket.tensors);
  const auto &was = std::get<KernelLaunch>(bucket.records[1].op),
             &is = std::get<KernelLaunch>(after.records[1].op);
  EXPECT_NE(is.kernel, was.kernel);
  EXPECT_EQ(is.reads, was.reads);
  EXPECT_EQ(is.writes, was.writes);
  EXPECT_EQ(is.ints, was.ints);
}

TEST(EditedBucket, ACallKeepsItsOwnWorkspace) {
  PlanData plan = chain(MadeOf::Calls);
  Bucket &bucket = plan.entries[0].buckets[0];
  EditedBucket edited(bucket, kWorkspaceBytes);
  edited.setRecords(edited.recordsWith(kFc2, algorithm()));
  const Bucket after = std::move(edited).take();
  EXPECT_EQ(after.arenaBytes, bucket.arenaBytes);
  const auto &was = std::get<LibraryCall>(bucket.records[1].op),
             &is = std::get<LibraryCall>(after.records[1].op);
  EXPECT_EQ(is.writes, was.writes);
  EXPECT_EQ(is.algorithm.size(), 80u);
}

TEST(SetTile, GivesTheLaunchThatTheKernelExpects) {
  constexpr int64_t kMany = backend::kNonPersistentMaxM + 1; // Includes persistent tiles.
  const auto view = [](const std::vector<int64_t> &sizes, DType dtype = DType::F16) {
    return OperandView{dtype, sizes, {}, kBufferAlignment};
  };
  for (const auto &[m, k] :
       {std::pair(kM, kWide), {kMany, kWide}, {kMany, 72}, {kMany, 64}, {kMany, 4096}})
    for (const backend::TiledKernels &family : {backend::gemmKernels(), backend::gemmNormKernels()})
      for (const backend::TileChoice &choice :
           backend::tileChoices(family.tiles, m, kNarrow, k, 132)) {
        const std::vector<int64_t> x = {m, k}, w = {kNarrow, k}, y = {m, kNarrow},
                                   statistics = {m, statisticsGroups(k), 2};
        KernelLaunch launch;
        launch.ints = {m, kNarrow, k, 0};
        backend::setTile(launch, family, DType::F16, choice);
        const Kernel *kernel = findKernel(launch.kernel);
        ASSERT_TRUE(kernel) << launch.kernel;
        EXPECT_EQ(launch.abiHash, kernel->abiHash);
        EXPECT_EQ(backend::tiledKernelsOf(launch)->name, family.name);
        std::vector<OperandView> reads = {view(x), view(w), {}, {}}, writes = {view(y), {}};
        if (choice.tile->normalizes) {
          reads[3] = view(statistics, DType::F32);
          launch.floats = {1e-5};
        }
        ASSERT_EQ(reads.size(), kernel->reads);
        ASSERT_EQ(writes.size(), kernel->writes);
        const Status status = kernel->check({launch.grid, launch.block, launch.sharedBytes, reads,
                                             writes, launch.ints, launch.floats});
        EXPECT_TRUE(status.isOk()) << launch.kernel << ": " << status.message();
      }
}

TEST(GemmSite, GeluAndF32HaveOneWay) {
  const Bucket tiles = chain(MadeOf::Tiles).entries[0].buckets[0];
  EXPECT_FALSE(gemmSite(tiles.records[0], tiles)->isForLibrary()) << "its GELU is another one";
  EXPECT_TRUE(gemmSite(tiles.records[1], tiles)->isForLibrary());
  EXPECT_TRUE(gemmSite(tiles.records[0], tiles)->isForTile());
  const Bucket wide = chain(MadeOf::Calls, DType::F32).entries[0].buckets[0];
  EXPECT_FALSE(gemmSite(wide.records[0], wide)->isForTile());
  EXPECT_TRUE(gemmSite(wide.records[0], wide)->isForLibrary());
  EXPECT_FALSE(gemmSite({Memcpy{}}, wide));
}

TEST(GemmSite, ANormalizingGemmHasRowStatisticsWhereOthersHaveAResidual) {
  Bucket bucket = chain(MadeOf::Tiles).entries[0].buckets[0];
  bucket.tensors.push_back(dense(BufferKind::Arena, 0, 0, DType::F32, {kM, 4, 2}));
  auto &launch = std::get<KernelLaunch>(bucket.records[0].op);
  launch.kernel = "gemm_norm_f16_64x80_1";
  launch.reads[3] = TensorId(bucket.tensors.size() - 1);
  const auto site = gemmSite(bucket.records[0], bucket);
  ASSERT_TRUE(site);
  EXPECT_EQ(describe(*site, bucket),
            "gemm_norm f16 [77,256] x [1024,256], bias, activation 1, 1 more");
  EXPECT_TRUE(site->isForTile());
  EXPECT_FALSE(site->isForLibrary());
}

TEST(Tune, RefusesACpuPlan) {
  SamplePlan sample = samplePlan();
  const Result<Plan> plan = Plan::fromMemory(sample.plan, sample.weights);
  ASSERT_TRUE(plan.isOk());
  const Status status = tune(*plan).status();
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_THAT(status.message(), HasSubstr("target cpu"));
}

} // namespace
} // namespace cgc::test

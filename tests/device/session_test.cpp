// Sessions of a small text tower on a GPU: any batch, threads, a shared memory pool, live weights.
#include "runtime/session/session.h"
#include "tests/device/text_tower.h"

#include <atomic>
#include <cmath>
#include <thread>

namespace cgc::test {
namespace {

class ServedTextTower : public CudaTest {
protected:
  /// A plan that says that texts are independent, which the driver proves for real ones.
  static std::shared_ptr<const Plan> towerPlan(unsigned seed) {
    Result<SamplePlan> tower = textTower(archHere(), seed);
    EXPECT_TRUE(tower.isOk()) << tower.status().message();
    Entry &entry = tower->plan.entries[0];
    entry.rows.independent = true;
    for (Bucket &bucket : entry.buckets)
      bucket.inputs[0].batchDim = bucket.outputs[0].batchDim = 0;
    Result<Plan> plan = Plan::fromMemory(tower->plan, tower->weights);
    EXPECT_TRUE(plan.isOk()) << plan.status().message();
    return std::make_shared<const Plan>(*std::move(plan));
  }

  static Session serve(const std::shared_ptr<const Plan> &plan,
                       const std::shared_ptr<MemoryPool> &pool) {
    SessionOptions options{.contexts = 2};
    options.engine.pool = pool;
    Result<Session> session = Session::create(plan, options);
    if (!session.isOk())
      throw std::runtime_error(session.status().message());
    return *std::move(session);
  }

  static std::vector<double> features(Session &session, std::vector<int64_t> ids) {
    return decodeAll(DType::F16, test::features(session, std::move(ids)));
  }

  /// Whether the features of some texts are those of others that begin at `at`, but for rounding:
  /// buckets of different sizes may run different kernels.
  static bool areNear(const std::vector<double> &got, const std::vector<double> &all, int64_t at) {
    double differences = 0;
    for (size_t i = 0; i < got.size(); ++i)
      differences += std::pow(got[i] - all[at * kEmbedding + i], 2);
    return differences <= 1e-5 * double(got.size()) / kEmbedding; // False for NaN.
  }

  static constexpr int64_t kTexts = 11;
  std::mt19937 random_{1};
  const std::vector<int64_t> ids_ = randomIds(kTexts, random_);
  std::vector<int64_t> texts(int64_t at, int64_t count) const {
    return {ids_.begin() + at * kContext, ids_.begin() + (at + count) * kContext};
  }
};

TEST_F(ServedTextTower, GivesEachTextItsFeaturesWhileWeightsAreSwapped) {
  const std::shared_ptr<const Plan> plans[] = {towerPlan(0), towerPlan(100)};
  const auto live = [&] {
    auto pool = MemoryPool::create({.target = DeviceKind::Cuda});
    ASSERT_TRUE(pool.isOk()) << pool.status().message();
    Session changing = serve(plans[0], *pool), constant = serve(plans[1], *pool);
    const std::vector<double> expected[] = {features(changing, ids_), features(constant, ids_)};
    ASSERT_FALSE(areNear(expected[0], expected[1], 0));
    std::atomic<int> wrong = 0;
    std::atomic<bool> isDone = false;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        std::mt19937 random(i);
        for (int request = 0; request < 12 || !isDone; ++request) {
          const int64_t count = 1 + int64_t(random() % kTexts),
                        at = int64_t(random() % (kTexts - count + 1));
          const bool changes = (random() & 1) == 0;
          const auto got = features(changes ? changing : constant, texts(at, count));
          // Those of the one plan's weights or of the other's, and never of both.
          wrong += !areNear(got, expected[1], at) && !(changes && areNear(got, expected[0], at));
        }
      });
    for (const int next : {1, 0, 1}) {
      const Status swapped = changing.swapWeights(plans[next]);
      EXPECT_TRUE(swapped.isOk()) << swapped.message();
    }
    isDone = true;
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(changing.stats().failures + constant.stats().failures, 0u);
    EXPECT_EQ(changing.stats().updates, 3u);
    EXPECT_TRUE(areNear(features(changing, ids_), expected[1], 0));
  };
  size_t freeBefore = 0, freeAfter = 0, total = 0;
  live(); // The driver keeps what it allocates at the first use.
  ASSERT_EQ(cudaMemGetInfo(&freeBefore, &total), cudaSuccess);
  live();
  ASSERT_EQ(cudaMemGetInfo(&freeAfter, &total), cudaSuccess);
  EXPECT_EQ(freeBefore, freeAfter);
}

/// Captures of one text's features.
class CapturedTextTower : public ServedTextTower {
protected:
  void SetUp() override {
    ServedTextTower::SetUp();
    if (IsSkipped())
      return;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&memory_, kBytes), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(memory_, ids_.data(), kIdBytes, cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~CapturedTextTower() override {
    (void)cudaFree(memory_);
    if (stream_)
      (void)cudaStreamDestroy(stream_);
  }

  struct DestroyExec {
    void operator()(cudaGraphExec_t exec) const { (void)cudaGraphExecDestroy(exec); }
  };
  using Exec = std::unique_ptr<CUgraphExec_st, DestroyExec>;
  /// An executable of a graph with one run.
  Result<Exec> capture(Session &session) {
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
    const TensorView in{memory_, DType::I64, DeviceKind::Cuda, kInSizes, {}},
        out{static_cast<std::byte *>(memory_) + kIdBytes,
            DType::F16,
            DeviceKind::Cuda,
            kOutSizes,
            {}};
    const Status status = session.run("main", {&in, 1}, {&out, 1}, stream_);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    Exec owner(exec);
    if (!status.isOk())
      return status;
    return owner;
  }
  std::vector<double> replay(const Exec &exec) {
    std::vector<std::byte> y(kBytes - kIdBytes);
    EXPECT_EQ(cudaGraphLaunch(exec.get(), stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(y.data(), static_cast<std::byte *>(memory_) + kIdBytes, y.size(),
                         cudaMemcpyDeviceToHost),
              cudaSuccess);
    return decodeAll(DType::F16, y);
  }

  static constexpr size_t kIdBytes = kContext * sizeof(int64_t), kBytes = kIdBytes + kEmbedding * 2;
  static constexpr int64_t kInSizes[] = {1, kContext}, kOutSizes[] = {1, kEmbedding};
  cudaStream_t stream_ = nullptr;
  void *memory_ = nullptr;
};

TEST_F(CapturedTextTower, HoldsItsContextUntilCudaHasDestroyedTheGraph) {
  Result<Session> session = Session::create(towerPlan(0), {.capturedContexts = 1});
  ASSERT_TRUE(session.isOk()) << session.status().message();
  const std::vector<double> expected = features(*session, texts(0, 1));
  Result<Exec> exec = capture(*session);
  ASSERT_TRUE(exec.isOk()) << exec.status().message();
  EXPECT_TRUE(areNear(replay(*exec), expected, 0));
  EXPECT_EQ(capture(*session).status().code(), Code::Busy);
  exec->reset();
  // CUDA destroys what a graph holds on a thread of its own, some time later.
  Result<Exec> next = capture(*session);
  for (int tries = 0; !next.isOk() && tries < 1000; ++tries) {
    EXPECT_EQ(next.status().code(), Code::Busy);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    next = capture(*session);
  }
  ASSERT_TRUE(next.isOk()) << next.status().message();
  EXPECT_TRUE(areNear(replay(*next), expected, 0));
}

} // namespace
} // namespace cgc::test

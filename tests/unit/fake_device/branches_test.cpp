// Tests of parallel branches on the fake GPU, which replays the nodes of a graph in random orders:
// parallel and plain captures give equal results, no edge is missing, and failures leak nothing.
#include "tests/unit/fake_device/context_fixture.h"

#include "runtime/plan/branches.h"
#include "runtime/plan/collective_call.h"
#include "tests/ranks.h"

#include <map>

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kRow = 4;

/// Builds a bucket of ops on f32[1,4] tensors by hand.
class BucketOfOps {
public:
  BucketOfOps() {
    bucket_.inputs = {{"x", DType::F32, {1, kRow}}};
    tensor(BufferKind::Input, 0, 0);
  }
  TensorId input() const { return id(0); }
  TensorId weight() { return tensor(BufferKind::Weight, 0, 0, {kRow}); }
  TensorId output() {
    const auto index = uint32_t(bucket_.outputs.size());
    bucket_.outputs.push_back({"y" + std::to_string(index), DType::F32, {1, kRow}});
    return tensor(BufferKind::Output, index, 0);
  }
  /// The arena's memory number `place`.
  TensorId arena(uint32_t place) {
    bucket_.arenaBytes = std::max<uint64_t>(bucket_.arenaBytes, 256 * (place + 1));
    return tensor(BufferKind::Arena, 0, 256 * place);
  }
  void negate(TensorId from, TensorId to, uint32_t branch) {
    AtenCall call{.op = "aten::neg", .overload = "out", .args = {from}, .outputs = {to}};
    call.writesOut = true;
    bucket_.records.push_back({call, kNoLocation, branch});
  }
  void add(TensorId a, TensorId b, TensorId to, uint32_t branch) {
    bucket_.records.push_back(
        {AtenCall{
             .op = "aten::add", .overload = "Tensor", .args = {a, b, int64_t(1)}, .outputs = {to}},
         kNoLocation, branch});
  }
  void copy(TensorId from, TensorId to, uint32_t branch) {
    bucket_.records.push_back({Memcpy{from, to}, kNoLocation, branch});
  }
  void reduce(TensorId from, TensorId to) {
    const CollectiveCall call{CollectiveKind::AllReduce, Reduction::Mean, 0, {from}, {to}};
    bucket_.records.push_back({libraryCall(call), kNoLocation, kCollectiveBranch});
  }
  const Bucket &bucket() const { return bucket_; }

private:
  TensorId tensor(BufferKind kind, uint32_t index, uint64_t offset,
                  std::vector<int64_t> sizes = {1, kRow}) {
    bucket_.tensors.push_back(dense(kind, index, offset, DType::F32, std::move(sizes)));
    return id(uint32_t(bucket_.tensors.size() - 1));
  }
  Bucket bucket_;
};

/// y0 = x - 1 + w, by way of a record of branch 0, two regions of `branches` chains each, which
/// reuse two places of the arena each, and sums between them. Branches alternate.
Bucket twoRegions(uint32_t branches, int depth) {
  BucketOfOps ops;
  const TensorId w = ops.weight(), start = ops.arena(0), middle = ops.arena(1);
  ops.negate(ops.input(), start, 0);
  TensorId from = start;
  for (int region = 0; region < 2; ++region) {
    std::vector<TensorId> ends(branches + 1, from);
    for (int i = 0; i < depth; ++i)
      for (uint32_t branch = 1; branch <= branches; ++branch) {
        const TensorId to = ops.arena(2 * branch + i % 2);
        if (i % 3 == 0)
          ops.add(ends[branch], w, to, branch);
        else if (i % 3 == 1)
          ops.negate(ends[branch], to, branch);
        else
          ops.copy(ends[branch], to, branch);
        ends[branch] = to;
      }
    // The sum of all chains, added up in the order of the branches.
    TensorId sum = ends[1];
    for (uint32_t branch = 2; branch <= branches; ++branch) {
      const TensorId to = ops.arena(20 + branch);
      ops.add(sum, ends[branch], to, 0);
      sum = to;
    }
    if (region == 0)
      ops.copy(sum, middle, 0);
    else
      ops.copy(sum, ops.output(), 0);
    from = middle;
  }
  return ops.bucket();
}

/// A region of three chains whose sum is y0. In its middle the value of each chain is reduced over
/// the ranks, and the result is added to that of another chain. It also replaces what a chain has
/// kept from its beginning, as the update of a parameter does, and is added from there. Chains
/// reuse their operands' places.
Bucket reducedRegion(int depth) {
  constexpr uint32_t kBranches = 3;
  BucketOfOps ops;
  const TensorId w = ops.weight(), start = ops.arena(0);
  ops.negate(ops.input(), start, 0);
  std::vector<TensorId> ends(kBranches + 1, start), means(kBranches + 1), kept(kBranches + 1);
  for (uint32_t branch = 1; branch <= kBranches; ++branch) {
    kept[branch] = ops.arena(30 + branch);
    ops.copy(start, kept[branch], branch);
  }
  for (int i = 0; i < depth; ++i) {
    for (uint32_t branch = 1; branch <= kBranches; ++branch) {
      const TensorId to = ops.arena(2 * branch + i % 2);
      if (i == depth / 2 + 2)
        ops.add(ends[branch], means[branch % kBranches + 1], to, branch);
      else if (i == depth / 2 - 1 || i == depth / 2 + 4)
        ops.add(ends[branch], kept[branch], to, branch);
      else if (i % 2 == 0)
        ops.add(ends[branch], w, to, branch);
      else
        ops.negate(ends[branch], to, branch);
      ends[branch] = to;
    }
    if (i == depth / 2)
      for (const uint32_t branch : {2, 3, 1}) {
        means[branch] = ops.arena(40 + branch);
        ops.reduce(ends[branch], means[branch]);
        ops.copy(means[branch], kept[branch], kUpdateBranch);
      }
  }
  ops.add(ends[1], ends[2], ops.arena(20), 0);
  ops.add(ops.arena(20), ends[3], ops.output(), 0);
  return ops.bucket();
}

class FakeBranches : public FakeDevice {
protected:
  void load(Bucket bucket, unsigned seed = 1) {
    fake_cuda::reset({.seed = seed});
    SamplePlan sample;
    sample.plan.target = DeviceKind::Cuda;
    sample.plan.producer = "test";
    sample.plan.weights = {{.name = "w", .dtype = DType::F32, .sizes = {kRow}}};
    sample.weights = {floatBytes({1, 2, 3, 4})};
    sample.plan.entries = {{.name = "main", .buckets = {std::move(bucket)}}};
    Result<Plan> plan = Plan::fromMemory(sample.plan, sample.weights);
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    engine_.reset();
    plan_ = std::make_unique<Plan>(*std::move(plan));
    Result<Engine> engine = createEngine();
    ASSERT_TRUE(engine.isOk()) << engine.status().message();
    engine_ = std::make_unique<Engine>(*std::move(engine));
  }

  Result<Context> create(ContextOptions options = {}) { return Context::create(*engine_, options); }

  /// The output for a row of these numbers in each of several runs.
  static std::vector<float> replays(Context &context, int runs) {
    std::vector<float> all;
    for (int i = 0; i < runs; ++i) {
      const auto y = FakeDevice::runMain(context, {float(i), 0.25f, -3, 1e7f});
      EXPECT_TRUE(y.isOk()) << y.status().message();
      if (y.isOk())
        all.insert(all.end(), y->begin(), y->end());
    }
    return all;
  }

  /// The bucket of main with other branches: `branch` for all records that have one.
  static Bucket inOneBranch(Bucket bucket, uint32_t branch) {
    for (LaunchRecord &record : bucket.records)
      record.branch = record.branch ? branch : 0;
    return bucket;
  }

  std::unique_ptr<Engine> engine_;
};

TEST_F(FakeBranches, ParallelAndPlainCapturesGiveEqualResults) {
  for (uint32_t branches : {2, 3, 4})
    for (unsigned seed = 1; seed <= 40; ++seed) {
      SCOPED_TRACE(testing::Message() << branches << " branches, seed " << seed);
      load(twoRegions(branches, 7), seed);
      for (const bool programmatic : {true, false}) {
        Result<Context> parallel = create({.programmaticEdges = programmatic}),
                        plain = create({.parallelBranches = false}),
                        stream = create({.executor = ExecutorKind::Stream});
        ASSERT_TRUE(parallel.isOk() && plain.isOk() && stream.isOk());
        const std::vector<float> expected = replays(*stream, 4);
        ASSERT_EQ(replays(*parallel, 4), expected);
        ASSERT_EQ(replays(*plain, 4), expected);
        EXPECT_NE(expected[0], expected[4]) << "the output depends on the input";
      }
    }
}

/// Two captures of one plan differ in their edges only.
TEST_F(FakeBranches, BranchesAreParallelInTheGraph) {
  // The orders in which the records' ops run in a replay.
  std::set<std::vector<int>> orders, plainOrders;
  std::vector<int> ran;
  provider_.ops["aten::neg"] = [&](const FakeCall &f, void *stream) -> Status {
    auto *const y = static_cast<float *>(f.outputs[0]);
    const auto *const x = static_cast<const float *>(f.arguments[0]);
    const int tensor = int(uint32_t(f.call.outputs[0]));
    return enqueue(stream, [=, &ran] {
      ran.push_back(tensor);
      std::transform(x, x + kRow, y, std::negate<>());
    });
  };
  BucketOfOps ops;
  const TensorId first = ops.output(), second = ops.output();
  for (const auto &[end, branch] : {std::pair(first, 1u), std::pair(second, 2u)}) {
    const TensorId inner = ops.arena(branch);
    ops.negate(ops.input(), inner, branch);
    ops.negate(inner, end, branch);
  }
  load(ops.bucket());
  const auto observe = [&](bool parallel, std::set<std::vector<int>> &seen) {
    Result<Context> context = create({.parallelBranches = parallel});
    ASSERT_TRUE(context.isOk()) << context.status().message();
    const std::vector<int64_t> sizes = {1, kRow};
    std::vector<float> x = {1, 2, 3, 4}, y(kRow), z(kRow);
    const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
    const TensorView outs[] = {{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}},
                               {z.data(), DType::F32, DeviceKind::Cpu, sizes, {}}};
    for (int i = 0; i < 60; ++i) {
      ran.clear();
      ASSERT_TRUE(context->run("main", {&in, 1}, outs).isOk());
      seen.insert(ran);
      EXPECT_EQ(y, x);
      EXPECT_EQ(z, x);
    }
  };
  observe(true, orders);
  observe(false, plainOrders);
  EXPECT_EQ(plainOrders.size(), 1u);
  EXPECT_EQ(orders.size(), 6u) << "all orders of two chains of two";
}

TEST_F(FakeBranches, AGraphHasOneNodeForEachRecordEitherWay) {
  load(twoRegions(3, 7));
  const size_t records = plan_->data().entries[0].buckets[0].records.size();
  for (const bool parallel : {true, false}) {
    const Result<Context> context = create({.parallelBranches = parallel});
    ASSERT_TRUE(context.isOk());
    EXPECT_EQ(context->stats("main", 0)->graphNodes, records);
  }
}

TEST_F(FakeBranches, EachStreamOfACaptureHasAPool) {
  load(twoRegions(3, 7));
  {
    const Result<Context> context = create();
    ASSERT_TRUE(context.isOk());
    EXPECT_EQ(provider_.pools, 3);
    EXPECT_EQ(provider_.captures, 0);
  }
  EXPECT_EQ(provider_.pools, 0);
  load(inOneBranch(twoRegions(3, 7), 1));
  const Result<Context> context = create();
  ASSERT_TRUE(context.isOk()) << context.status().message();
  EXPECT_EQ(provider_.pools, 1) << "one branch needs no further stream";
}

TEST_F(FakeBranches, ARunWaitsForNothingAndAllocatesNothing) {
  load(twoRegions(4, 7));
  Result<Context> context = create();
  ASSERT_TRUE(context.isOk());
  const DeviceFloats x(kRow, 1), y(kRow);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_TRUE(enqueueMain(*context, x, y, stream).isOk()); // Makes a graph for these addresses.
  fake_cuda::clearCalls();
  ASSERT_TRUE(enqueueMain(*context, x, y, stream).isOk());
  EXPECT_EQ(fake_cuda::callCounts().allocations, 0u);
  EXPECT_EQ(fake_cuda::callCounts().waits, 0u);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(FakeBranches, ProfilesEachRecordAndCapturesAgain) {
  load(twoRegions(2, 7));
  Result<Context> context = create();
  ASSERT_TRUE(context.isOk());
  const std::vector<float> before = replays(*context, 2);
  const auto times = context->profile("main", 0, 3);
  ASSERT_TRUE(times.isOk()) << times.status().message();
  EXPECT_EQ(times->size(), plan_->data().entries[0].buckets[0].records.size());
  EXPECT_EQ(replays(*context, 2), before);
}

/// Collectives beside branches: as one record after another, in any order that the graph allows.
TEST_F(FakeBranches, CollectivesFollowTheirOperandsAndPrecedeTheirReaders) {
  load(reducedRegion(11));
  for (const int ranks : {1, 2, 3})
    for (unsigned seed = 1; seed <= 8; ++seed) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, seed " + std::to_string(seed));
      fake_cuda::reset({.devices = 3, .seed = seed});
      onRanks({.count = ranks, .haveGpus = true}, [&](Communicator &c) {
        ASSERT_EQ(cudaSetDevice(c.rank()), cudaSuccess);
        FakeProvider provider;
        provider.ops = provider_.ops;
        EngineOptions options;
        options.provider = &provider;
        options.device = c.rank();
        options.communicator = std::shared_ptr<Communicator>(std::shared_ptr<void>(), &c);
        const Result<Engine> engine = Engine::create(*plan_, options);
        ASSERT_TRUE(engine.isOk()) << engine.status().message();
        std::vector<std::vector<float>> results;
        for (const ExecutorKind executor : {ExecutorKind::Stream, ExecutorKind::Graph}) {
          Result<Context> context = Context::create(*engine, {.executor = executor});
          ASSERT_TRUE(context.isOk()) << context.status().message();
          for (int run = 0; run < 3; ++run) {
            const float x = 0.1F * float(run) + float(c.rank());
            const auto y = runMain(*context, {x, 2 * x, 1, -x});
            ASSERT_TRUE(y.isOk()) << y.status().message();
            results.push_back(*y);
          }
        }
        for (int run = 0; run < 3; ++run)
          EXPECT_EQ(results[run], results[run + 3]) << "run " << run;
        EXPECT_NE(results[0], results[1]);
      });
    }
}

TEST_F(FakeBranches, TellsWhenEachRecordRuns) {
  load(twoRegions(2, 7));
  Result<Context> context = create();
  ASSERT_TRUE(context.isOk());
  const std::vector<float> before = replays(*context, 2);
  const auto spans = context->timeline("main", 0, 3);
  ASSERT_TRUE(spans.isOk()) << spans.status().message();
  const std::vector<LaunchRecord> &records = plan_->data().entries[0].buckets[0].records;
  ASSERT_EQ(spans->size(), records.size());
  std::map<uint32_t, double> ends; // Of the last record of each branch.
  for (size_t i = 0; i < records.size(); ++i) {
    ASSERT_EQ((*spans)[i].size(), 3u);
    const RecordSpan span = (*spans)[i][0];
    EXPECT_GE(span.begin, ends[records[i].branch]) << i;
    EXPECT_GE(span.end, span.begin) << i;
    ends[records[i].branch] = span.end;
  }
  EXPECT_EQ(replays(*context, 2), before);
}

/// A failure in any branch names the record; streams can be used again, and nothing leaks.
TEST_F(FakeBranches, AFailingRecordDiscardsTheGraph) {
  load(twoRegions(3, 7));
  const size_t handles = fake_cuda::liveHandles();
  const uint64_t bytes = fake_cuda::allocatedBytes();
  const size_t calls = 40; // More than a run has.
  size_t failed = 0;
  for (size_t failing = 0; failing < 4 * calls; failing += 3) {
    size_t call = 0;
    provider_.ops["aten::add"] = [&](const FakeCall &f, void *stream) -> Status {
      return call++ == failing ? Status(Code::Failed, "not now") : addRows(f, stream);
    };
    const Result<Context> context = create();
    if (!context.isOk()) {
      ++failed;
      EXPECT_THAT(context.status().message(), HasSubstr("aten::add.Tensor: not now"));
    }
    EXPECT_EQ(context.isOk(), call <= failing);
  }
  EXPECT_GT(failed, 10u);
  EXPECT_EQ(provider_.pools, 0);
  EXPECT_EQ(provider_.captures, 0);
  EXPECT_EQ(fake_cuda::liveHandles(), handles);
  EXPECT_EQ(fake_cuda::allocatedBytes(), bytes);
}

TEST_F(FakeBranches, EveryFailedCallOfCudaIsReportedAndLeaksNothing) {
  load(twoRegions(3, 4));
  Result<Context> reference = create();
  ASSERT_TRUE(reference.isOk());
  const std::vector<float> expected = replays(*reference, 1);
  size_t calls = 0; // Of a creation, without those of the destructor.
  {
    fake_cuda::clearCalls();
    const Result<Context> context = create();
    ASSERT_TRUE(context.isOk());
    calls = fake_cuda::callCounts().all;
  }
  ASSERT_GT(calls, 50u);
  const size_t handles = fake_cuda::liveHandles();
  const uint64_t bytes = fake_cuda::allocatedBytes();
  for (size_t nth = 1; nth <= calls; ++nth) {
    SCOPED_TRACE(nth);
    fake_cuda::clearCalls();
    fake_cuda::failAnyCall(int(nth), cudaErrorLaunchFailure);
    const Status status = create().status();
    const std::string failed(fake_cuda::calls().at(nth - 1).function);
    // What saves the thread's device, or frees something, may fail.
    const bool mayFail = failed == "cudaGetDevice" || failed == "cudaSetDevice" ||
                         failed.find("Destroy") != std::string::npos;
    if (!status.isOk() || !mayFail) {
      EXPECT_EQ(status.code(), Code::Device) << failed;
      EXPECT_THAT(status.message(), HasSubstr(failed == "enqueue" ? "aten::" : failed));
      EXPECT_THAT(status.message(), HasSubstr("cudaErrorLaunchFailure"));
    }
    ASSERT_EQ(fake_cuda::liveHandles(), handles);
    ASSERT_EQ(fake_cuda::allocatedBytes(), bytes);
    ASSERT_EQ(provider_.pools, 0 + 3) << "those of the first context";
  }
  EXPECT_EQ(replays(*reference, 1), expected);
}

} // namespace
} // namespace cgc::test

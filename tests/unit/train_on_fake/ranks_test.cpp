// Trainer by several ranks, each on a fake GPU of its own: a step with its collectives beside other
// records, on streams and in graphs, and when a collective fails.
#include "runtime/base/training_names.h"
#include "runtime/plan/collective_call.h"
#include "tests/ranks.h"
#include "tests/unit/runtime/train/trained_plan.h"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

namespace cgc::test {
namespace {

using testing::HasSubstr;

constexpr int kSteps = 4;

/// trainingPlan() with the gradient and the loss averaged over all ranks, and a seed.
SamplePlan rankedPlan() {
  SamplePlan sample = trainingPlan(kTestDevice);
  sample.plan.states.push_back({kSeedState, StateRole::Control, DType::I64, {}});
  Bucket &step = sample.plan.entries[0].buckets[0];
  const auto mean = [](TensorId operand, TensorId result) {
    LaunchRecord record{libraryCall({.kind = CollectiveKind::AllReduce,
                                     .reduction = Reduction::Mean,
                                     .operands = {operand},
                                     .results = {result}})};
    record.branch = kCollectiveBranch;
    return record;
  };
  const TensorId gradient = id(step.tensors.size());
  step.arenaBytes = 512;
  step.tensors.push_back(dense(BufferKind::Arena, 0, 256, DType::F32, {kTrained}));
  step.tensors.push_back(dense(BufferKind::State, 5, 0, DType::I64, {}));
  // The loss is computed beside the reduction of the gradient, and reduced beside the update.
  step.records.insert(step.records.begin() + 1, mean(id(1), gradient));
  step.records.insert(step.records.begin() + 3, mean(id(2), id(2)));
  for (LaunchRecord &record : step.records)
    if (auto *call = std::get_if<AtenCall>(&record.op); call && call->op == "aten::momentum")
      call->args[1] = gradient;
  return sample;
}

/// What a rank's trainer came to.
struct Outcome {
  Status status; ///< The first failure.
  std::vector<double> losses;
  std::vector<float> w, m;
  int64_t seed = -1;
};

class TrainerRanks : public TrainedPlan {
protected:
  TrainerRanks() { fake_cuda::reset({.devices = 8}); }
  ~TrainerRanks() override { fake_cuda::reset(); }

  static std::vector<float> batchOf(int step, int rank) { return batch(step * 11 + rank); }

  Outcome trainAs(Communicator &c, ExecutorKind executor) const {
    FakeProvider provider;
    provider.ops = trainingOps(doWork);
    TrainerOptions options;
    options.engine.provider = &provider;
    options.engine.executor = executor;
    options.engine.device = c.rank();
    // onRanks() keeps it as long as this runs.
    options.communicator = std::shared_ptr<Communicator>(std::shared_ptr<void>(), &c);
    Outcome outcome;
    Result<Trainer> trainer = Trainer::create(ranked_, std::move(options));
    outcome.status = trainer.status();
    for (int i = 0; i < kSteps && outcome.status.isOk(); ++i) {
      outcome.status = step(*trainer, batchOf(i, c.rank()));
      if (outcome.status.isOk())
        outcome.status = trainer->wait();
      const auto results = trainer->poll();
      if (results.isOk())
        for (const StepResult &result : *results)
          outcome.losses.push_back(result.loss);
    }
    if (!outcome.status.isOk()) {
      c.abort(outcome.status);
      return outcome;
    }
    outcome.w = read(*trainer, "w");
    outcome.m = read(*trainer, "w:exp_avg");
    EXPECT_TRUE(
        trainer->read(kSeedState, {&outcome.seed, DType::I64, DeviceKind::Cpu, {}, {}}).isOk());
    return outcome;
  }
  std::vector<Outcome> trainAll(int ranks, ExecutorKind executor) const {
    std::vector<Outcome> outcomes(ranks);
    onRanks({.count = ranks, .haveGpus = true}, [&](Communicator &c) {
      ASSERT_EQ(cudaSetDevice(c.rank()), cudaSuccess);
      outcomes[c.rank()] = trainAs(c, executor);
    });
    return outcomes;
  }

  const std::shared_ptr<const Plan> ranked_ = planOf(rankedPlan());
};

TEST_F(TrainerRanks, StepsAreEqualToTheBitOnStreamsAndInGraphs) {
  for (const int ranks : {1, 2, 3, 8}) {
    SCOPED_TRACE(ranks);
    const std::vector<Outcome> graph = trainAll(ranks, ExecutorKind::Graph);
    const std::vector<Outcome> stream = trainAll(ranks, ExecutorKind::Stream);
    std::vector<TrainedModel> models(ranks); // Each with the loss of its own batch.
    std::vector<double> losses;
    for (int i = 0; i < kSteps; ++i) {
      std::vector<double> mean(kTrained);
      double loss = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const std::vector<float> x = batchOf(i, rank);
        loss += models[0].evaluate(x) / ranks;
        for (int64_t k = 0; k < kTrained; ++k)
          mean[k] += double(x[k]) / ranks;
      }
      losses.push_back(loss);
      models[0].step({mean.begin(), mean.end()}); // The gradient is linear in x.
    }
    for (int rank = 0; rank < ranks; ++rank) {
      for (const Outcome *outcome : {&graph[rank], &stream[rank]}) {
        ASSERT_TRUE(outcome->status.isOk()) << outcome->status.message();
        EXPECT_EQ(outcome->losses, graph[0].losses);
        EXPECT_EQ(outcome->w, graph[0].w);
        EXPECT_EQ(outcome->m, graph[0].m);
        EXPECT_EQ(outcome->seed, rank);
      }
    }
    ASSERT_EQ(graph[0].losses.size(), size_t(kSteps));
    for (int i = 0; i < kSteps; ++i)
      EXPECT_NEAR(graph[0].losses[i], losses[i], 1e-5 * losses[i]) << "step " << i;
    for (int64_t k = 0; k < kTrained; ++k)
      EXPECT_NEAR(graph[0].w[k], models[0].w[k], 1e-4);
  }
}

/// Whichever collective fails on whichever rank: all ranks fail, and name what failed.
TEST_F(TrainerRanks, FailWithEachCollectiveOfEachRank) {
  constexpr int kRanks = 3;
  for (const ExecutorKind executor : {ExecutorKind::Graph, ExecutorKind::Stream})
    for (int failing = 0; failing < kRanks; ++failing) {
      int nth = 1;
      for (; nth < 100; ++nth) {
        SCOPED_TRACE(std::to_string(failing) + ":" + std::to_string(nth));
        const Variable fault("NCCL_TEST_FAULT",
                             std::to_string(failing) + ":" + std::to_string(nth) + ":error");
        const std::vector<Outcome> outcomes = trainAll(kRanks, executor);
        if (outcomes[failing].status.isOk())
          break; // There are fewer collectives.
        for (const Outcome &outcome : outcomes) {
          EXPECT_EQ(outcome.status.code(), Code::Device) << outcome.status.message();
          EXPECT_LT(outcome.losses.size(), size_t(kSteps));
        }
        EXPECT_THAT(outcomes[failing].status.message(), HasSubstr("system error"));
      }
      EXPECT_GT(nth, 2 * kSteps); // Two of each step.
      EXPECT_LT(nth, 100);
    }
}

TEST_F(TrainerRanks, TellWhenCollectivesRun) {
  onRanks({.count = 2, .haveGpus = true}, [&](Communicator &c) {
    ASSERT_EQ(cudaSetDevice(c.rank()), cudaSuccess);
    FakeProvider provider;
    provider.ops = trainingOps(doWork);
    EngineOptions options;
    options.provider = &provider;
    options.device = c.rank();
    options.communicator = std::shared_ptr<Communicator>(std::shared_ptr<void>(), &c);
    const Result<Engine> engine = Engine::create(*ranked_, options);
    ASSERT_TRUE(engine.isOk()) << engine.status().message();
    Result<Context> context = Context::create(*engine);
    ASSERT_TRUE(context.isOk()) << context.status().message();
    const auto spans = context->timeline("step", 0, 2);
    ASSERT_TRUE(spans.isOk()) << spans.status().message();
    EXPECT_EQ(spans->size(), ranked_->data().entries[0].buckets[0].records.size());
  });
}

} // namespace
} // namespace cgc::test

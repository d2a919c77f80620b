// Trainer by several ranks, each on a fake GPU of its own: a step with its collectives beside other
// records, on streams and in graphs, when a collective fails, and with moments that ranks divide.
#include "runtime/base/training_names.h"
#include "runtime/plan/collective_call.h"
#include "runtime/plan/plan_memory.h"
#include "runtime/plan/shards.h"
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/ranks.h"
#include "tests/unit/runtime/sharded_plan.h"
#include "tests/unit/runtime/train/trained_plan.h"

#include <cmath>
#include <cuda_runtime_api.h>
#include <functional>
#include <map>

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

/// rankedPlan() with three parameters, whose moments are divided into three shards. The gradients
/// of the last two are reduced to the rank with their shard.
SamplePlan shardedPlan() {
  SamplePlan sample = rankedPlan();
  shardMoments(sample, 3);
  Bucket &step = sample.plan.entries[0].buckets[0];
  for (uint32_t shard = 1; shard < 3; ++shard) {
    step.tensors.push_back(dense(BufferKind::Arena, 0, 256 + 256 * shard, DType::F32, {kTrained}));
    const TensorId mean = id(step.tensors.size() - 1);
    step.records.insert(step.records.begin() + 1,
                        {.op = libraryCall({.kind = CollectiveKind::AllReduce,
                                            .reduction = Reduction::Mean,
                                            .operands = {id(1)},
                                            .results = {mean},
                                            .shard = shard}),
                         .branch = kCollectiveBranch});
    for (LaunchRecord &record : step.records)
      if (auto *call = std::get_if<AtenCall>(&record.op); call && call->op == "aten::momentum")
        if (const State &state =
                sample.plan.states[step.tensors[uint32_t(call->outputs[0])].slot.index];
            state.shard == shard)
          call->args[1] = mean;
  }
  step.arenaBytes = 1024;
  return sample;
}

/// shardedPlan() with moments that every rank holds.
SamplePlan wholePlan() {
  SamplePlan sample = shardedPlan();
  for (State &state : sample.plan.states)
    state.shard.reset();
  std::vector<LaunchRecord> &records = sample.plan.entries[0].buckets[0].records;
  std::erase_if(records, [](const LaunchRecord &record) {
    const auto *const call = std::get_if<LibraryCall>(&record.op);
    return call && call->function == "broadcast";
  });
  for (LaunchRecord &record : records)
    if (auto *const call = std::get_if<LibraryCall>(&record.op))
      call->ints.resize(2); // To all ranks.
  return sample;
}

/// The states of shardedPlan() that the step computes from gradients.
constexpr const char *kTrainedStates[] = {"w", "w1", "w2", "w:exp_avg", "w1:exp_avg", "w2:exp_avg"};

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

  /// Of a rank on its GPU.
  static TrainerOptions optionsOf(Communicator &c, FakeProvider &provider,
                                  ExecutorKind executor = ExecutorKind::Graph) {
    TrainerOptions options;
    options.engine.provider = &provider;
    options.engine.executor = executor;
    options.engine.device = c.rank();
    // onRanks() keeps it as long as its body runs.
    options.communicator = std::shared_ptr<Communicator>(std::shared_ptr<void>(), &c);
    return options;
  }

  Outcome trainAs(Communicator &c, ExecutorKind executor) const {
    FakeProvider provider;
    provider.ops = trainingOps(doWork);
    Outcome outcome;
    Result<Trainer> trainer = Trainer::create(ranked_, optionsOf(c, provider, executor));
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

  /// Steps `begin` to `end` - 1 by so many ranks, between the checkpoints of the folders `from`, if
  /// it is given, and `to`. `check` is called with each trainer after that.
  void trainBetween(
      const std::shared_ptr<const Plan> &plan, int ranks, int begin, int end,
      const std::string &from, const std::string &to,
      const std::function<void(Trainer &, Communicator &)> &check = [](Trainer &,
                                                                       Communicator &) {},
      ExecutorKind executor = ExecutorKind::Graph) const {
    onRanks({.count = ranks, .haveGpus = true}, [&](Communicator &c) {
      ASSERT_EQ(cudaSetDevice(c.rank()), cudaSuccess);
      FakeProvider provider;
      provider.ops = trainingOps(doWork);
      TrainerOptions options = optionsOf(c, provider, executor);
      options.engine.separateBuffers = executor == ExecutorKind::Stream;
      Result<Trainer> trainer = Trainer::create(plan, std::move(options));
      ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
      if (!from.empty()) {
        const auto loaded = trainer->load(folder_ / from, {.anyPlan = true});
        ASSERT_TRUE(loaded.isOk()) << loaded.status().message();
      }
      for (int i = begin; i < end; ++i)
        ASSERT_TRUE(step(*trainer, batchOf(i, c.rank())).isOk());
      const Status saved = trainer->save(folder_ / to);
      ASSERT_TRUE(saved.isOk()) << saved.message();
      check(*trainer, c);
    });
  }
  /// Runs `body` with the trainers of two ranks, which wait 2 s for each other.
  static void onTwoTrainers(const std::shared_ptr<const Plan> &plan,
                            const std::function<void(Trainer &, Communicator &)> &body) {
    onRanks({.count = 2, .haveGpus = true, .timeout = std::chrono::seconds(2)},
            [&](Communicator &c) {
              ASSERT_EQ(cudaSetDevice(c.rank()), cudaSuccess);
              FakeProvider provider;
              provider.ops = trainingOps(doWork);
              Result<Trainer> trainer = Trainer::create(plan, optionsOf(c, provider));
              ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
              body(*trainer, c);
            });
  }
  /// The trained states of a checkpoint, which one process without other ranks loads.
  std::map<std::string, std::vector<float>> statesOf(const std::string &folder) {
    Result<Trainer> alone = create(sharded_);
    EXPECT_TRUE(alone.isOk()) << alone.status().message();
    const auto loaded = alone->load(folder_ / folder, {.anyPlan = true});
    EXPECT_TRUE(loaded.isOk()) << loaded.status().message();
    std::map<std::string, std::vector<float>> states;
    for (const char *name : kTrainedStates)
      states[name] = read(*alone, name);
    return states;
  }

  const std::shared_ptr<const Plan> ranked_ = planOf(rankedPlan());
  const std::shared_ptr<const Plan> sharded_ = planOf(shardedPlan()), whole_ = planOf(wholePlan());
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

/// A rank that hangs: the others end with the timeout.
TEST_F(TrainerRanks, EndWhenOneHangs) {
  for (const ExecutorKind executor : {ExecutorKind::Graph, ExecutorKind::Stream}) {
    // In a step: a graph has two warm-up runs before.
    const Variable fault("NCCL_TEST_FAULT",
                         executor == ExecutorKind::Graph ? "1:12:hang" : "1:8:hang");
    std::vector<Outcome> outcomes(2);
    onRanks({.count = 2, .haveGpus = true, .timeout = std::chrono::seconds(2)},
            [&](Communicator &c) {
              ASSERT_EQ(cudaSetDevice(c.rank()), cudaSuccess);
              outcomes[c.rank()] = trainAs(c, executor);
            });
    EXPECT_EQ(outcomes[0].status.code(), Code::Device);
    EXPECT_THAT(outcomes[0].status.message(), HasSubstr("did not complete within 2 s"));
    EXPECT_FALSE(outcomes[1].status.isOk());
  }
}

/// Ranks with values of their own: those of rank 0 are taken, and each has a seed of its own.
TEST_F(TrainerRanks, ShareTheStatesOfRank0) {
  onRanks({.count = 3, .haveGpus = true}, [&](Communicator &c) {
    ASSERT_EQ(cudaSetDevice(c.rank()), cudaSuccess);
    FakeProvider provider;
    provider.ops = trainingOps(doWork);
    Result<Trainer> trainer = Trainer::create(ranked_, optionsOf(c, provider));
    ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
    const auto seed = [&] {
      int64_t value = -1;
      EXPECT_TRUE(trainer->read(kSeedState, {&value, DType::I64, DeviceKind::Cpu, {}, {}}).isOk());
      return value;
    };
    std::vector<float> own(kTrained, 10.0F + float(c.rank()));
    ASSERT_TRUE(trainer->write("w", floatView(own, kParameterSizes)).isOk());
    EXPECT_EQ(read(*trainer, "w"), std::vector<float>(kTrained, 10));
    EXPECT_EQ(seed(), c.rank());
    const double five = 5;
    ASSERT_TRUE(trainer->set(kSeedState, {&five, 1}).isOk());
    EXPECT_EQ(seed(), 5 + c.rank());
    // A checkpoint of each rank's own.
    const std::string folder = folder_ / "run" + std::to_string(c.rank());
    FakeProvider alone;
    alone.ops = trainingOps(doWork);
    TrainerOptions options;
    options.engine.provider = &alone;
    options.engine.device = c.rank();
    Result<Trainer> writer = Trainer::create(ranked_, std::move(options));
    ASSERT_TRUE(writer.isOk()) << writer.status().message();
    ASSERT_TRUE(writer->write("w", floatView(own, kParameterSizes)).isOk());
    ASSERT_TRUE(writer->save(folder).isOk());
    const auto loaded = trainer->load(folder);
    ASSERT_TRUE(loaded.isOk()) << loaded.status().message();
    EXPECT_EQ(read(*trainer, "w"), std::vector<float>(kTrained, 10));
    EXPECT_EQ(seed(), c.rank());
    ASSERT_TRUE(trainer->reset().isOk());
    EXPECT_EQ(seed(), c.rank());
  });
}

TEST_F(TrainerRanks, AgreeOnTheLargestNumber) {
  onRanks({.count = 3}, [&](Communicator &c) {
    for (const int rank : {0, 1, 2}) {
      const Result<uint8_t> largest = c.largest(c.rank() == rank ? 15 : 2);
      ASSERT_TRUE(largest.isOk()) << largest.status().message();
      EXPECT_EQ(*largest, 15);
    }
  });
}

/// A batch that one rank refuses ends the training of all: the ranks would be a step apart.
TEST_F(TrainerRanks, EndWhenOneRefusesItsBatch) {
  onTwoTrainers(ranked_, [&](Trainer &trainer, Communicator &c) {
    std::vector<float> three(3);
    const std::vector<int64_t> sizes = {3};
    const TensorView wrong = floatView(three, sizes);
    const Status first = c.rank() == 1 ? trainer.step({&wrong, 1}) : step(trainer, batch(0));
    if (c.rank() == 1) {
      EXPECT_EQ(first.code(), Code::Usage);
    }
    const Status second = first.isOk() ? trainer.wait() : step(trainer, batch(0));
    EXPECT_FALSE(second.isOk());
    EXPECT_FALSE(trainer.save(folder_ / "run").isOk());
    EXPECT_FALSE(trainer.reset().isOk());
    c.abort({Code::Failed, "rank 1 is done"});
  });
}

TEST_F(TrainerRanks, ACommunicatorIsOfTheEnginesGpu) {
  onRanks({.count = 1, .haveGpus = true}, [&](Communicator &c) {
    FakeProvider provider;
    TrainerOptions options = optionsOf(c, provider);
    options.engine.device = 3;
    const Status status = Trainer::create(ranked_, std::move(options)).status();
    EXPECT_EQ(status.code(), Code::Usage);
    EXPECT_THAT(status.message(),
                HasSubstr("the communicator is of GPU 0, and the engine of GPU 3"));
  });
}

/// A plan whose step gathers from `ranks` ranks, one after another.
SamplePlan gatheringPlan(const std::vector<int64_t> &ranks) {
  SamplePlan sample = trainingPlan(kTestDevice);
  Bucket &step = sample.plan.entries[0].buckets[0];
  for (const int64_t number : ranks) {
    const TensorId all = id(step.tensors.size());
    step.tensors.push_back(
        dense(BufferKind::Arena, 0, step.arenaBytes, DType::F32, {kTrained * number}));
    step.arenaBytes += 256;
    step.records.push_back(
        {libraryCall(CollectiveCall{CollectiveKind::AllGather, {}, number, {id(1)}, {all}}),
         kNoLocation, kCollectiveBranch});
  }
  return sample;
}

TEST_F(TrainerRanks, APlanIsForItsNumberOfRanks) {
  for (const auto &[ranks, made] :
       {std::pair(std::vector<int64_t>{3}, "3"), {std::vector<int64_t>{2, 3}, "3"}}) {
    const std::shared_ptr<const Plan> plan = planOf(gatheringPlan(ranks));
    onRanks({.count = 2, .haveGpus = true}, [&](Communicator &c) {
      ASSERT_EQ(cudaSetDevice(c.rank()), cudaSuccess);
      FakeProvider provider;
      provider.ops = trainingOps(doWork);
      const Status status = Trainer::create(plan, optionsOf(c, provider)).status();
      EXPECT_EQ(status.code(), Code::Usage);
      EXPECT_THAT(status.message(), HasSubstr("entry 'step', bucket 0 is made for " +
                                              std::string(made) + " ranks, and 2 run it"));
    });
    // One process can run its other entries.
    const Result<Engine> engine = Engine::create(*plan, {.provider = &provider_});
    ASSERT_TRUE(engine.isOk()) << engine.status().message();
    Result<Context> context = Context::create(*engine);
    ASSERT_TRUE(context.isOk()) << context.status().message();
    std::vector<float> x = batch(0);
    float loss = 0;
    const TensorView in = floatView(x, kParameterSizes);
    const TensorView out{&loss, DType::F32, DeviceKind::Cpu, {}, {}};
    ASSERT_TRUE(context->run("evaluate", {&in, 1}, {&out, 1}).isOk());
    EXPECT_EQ(loss, TrainedModel().evaluate(x));
    EXPECT_THAT(context->run("step", {&in, 1}, {&out, 1}).message(), HasSubstr("and one runs it"));
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

/// Moments that ranks divide: the same bits as without, in less memory.
TEST_F(TrainerRanks, DivideMoments) {
  const PlanData &plan = sharded_->data();
  for (const int ranks : {1, 2, 3, 4})
    for (const ExecutorKind executor : {ExecutorKind::Graph, ExecutorKind::Stream}) {
      SCOPED_TRACE(ranks);
      const std::vector<int> owners = shardOwners(plan, ranks);
      const auto check = [&](Trainer &trainer, Communicator &c) {
        EXPECT_EQ(trainer.memory().states,
                  stateOffsets(plan, heldStates(plan, owners, c.rank())).back());
        EXPECT_EQ(read(trainer, "w2"), read(trainer, "w"));
        for (const uint32_t shard : {0, 1, 2}) {
          std::vector<float> moment(kTrained);
          const Status status = trainer.read(shard == 0   ? "w:exp_avg"
                                             : shard == 1 ? "w1:exp_avg"
                                                          : "w2:exp_avg",
                                             floatView(moment, kParameterSizes));
          EXPECT_EQ(status.isOk(), owners[shard] == c.rank());
          if (!status.isOk()) {
            EXPECT_EQ(status.code(), Code::Usage);
            EXPECT_THAT(status.message(),
                        HasSubstr("rank " + std::to_string(owners[shard]) + " holds the state 'w"));
          }
        }
      };
      trainBetween(sharded_, ranks, 0, kSteps, "", "sharded", check, executor);
      trainBetween(whole_, ranks, 0, kSteps, "", "whole");
      const auto sharded = statesOf("sharded");
      EXPECT_EQ(sharded, statesOf("whole"));
      EXPECT_NE(sharded.at("w:exp_avg"), std::vector<float>(kTrained, 0));
      EXPECT_EQ(sharded.at("w2:exp_avg"), sharded.at("w:exp_avg"));
    }
  EXPECT_EQ(stateOffsets(plan, heldStates(plan, shardOwners(plan, 3), 1)).back(),
            stateOffsets(plan).back() - 2 * 256u);
}

/// A checkpoint of two ranks goes on with others, and with moments that every rank holds.
TEST_F(TrainerRanks, GoOnWithOtherShards) {
  trainBetween(sharded_, 2, 0, 2, "", "two");
  for (const int ranks : {1, 3}) {
    trainBetween(sharded_, ranks, 2, kSteps, "two", "sharded");
    trainBetween(whole_, ranks, 2, kSteps, "two", "whole");
    EXPECT_EQ(statesOf("sharded"), statesOf("whole"));
  }
  Result<Trainer> alone = create(sharded_);
  ASSERT_TRUE(alone.isOk());
  ASSERT_TRUE(alone->load(folder_ / "two").isOk()); // Of the same plan.
  ASSERT_TRUE(train(*alone, 2, 4).isOk());
  trainBetween(sharded_, 3, 0, 0, "two", "again");
  EXPECT_EQ(statesOf("again"), statesOf("two"));
}

/// All ranks write a state, load weights and reset, as rank 0 says; a checkpoint that rank 0 cannot
/// write keeps no rank waiting.
TEST_F(TrainerRanks, MoveDividedStates) {
  const std::vector<int> owners = shardOwners(sharded_->data(), 3);
  trainBetween(sharded_, 3, 0, 1, "", "run", [&](Trainer &trainer, Communicator &c) {
    std::vector<float> own(kTrained, 10.0F + float(c.rank()));
    for (const char *name : {"w:exp_avg", "w1:exp_avg", "w2:exp_avg"})
      ASSERT_TRUE(trainer.write(name, floatView(own, kParameterSizes)).isOk());
    const std::string held = owners[0] == c.rank()   ? "w:exp_avg"
                             : owners[1] == c.rank() ? "w1:exp_avg"
                                                     : "w2:exp_avg";
    EXPECT_EQ(read(trainer, held), std::vector<float>(kTrained, 10));
    own.back() = NAN;
    ASSERT_TRUE(trainer.write("w1:exp_avg", floatView(own, kParameterSizes)).isOk());
    const Status saved = trainer.save(folder_ / "run");
    EXPECT_EQ(saved.code(), c.rank() == 0 ? Code::Failed : Code::Ok) << saved.message();
    ASSERT_TRUE(trainer.reset().isOk());
    EXPECT_EQ(read(trainer, held), std::vector<float>(kTrained, 0));
    const Status again = trainer.save(folder_ / "again");
    EXPECT_TRUE(again.isOk()) << again.message();
  });
  EXPECT_NE(statesOf("run").at("w1:exp_avg"), std::vector<float>(kTrained, 0));
  EXPECT_EQ(statesOf("again").at("w1:exp_avg"), std::vector<float>(kTrained, 0));
}

/// The others wait for a rank that refuses its view of a divided state.
TEST_F(TrainerRanks, EndWhenOneDoesNotMoveADividedState) {
  onTwoTrainers(sharded_, [&](Trainer &trainer, Communicator &c) {
    std::vector<float> values(kTrained + 1);
    const std::vector<int64_t> wrong = {kTrained + 1};
    const Status written =
        trainer.write("w:exp_avg", floatView(values, c.rank() == 1 ? wrong : kParameterSizes));
    EXPECT_FALSE(written.isOk());
    EXPECT_FALSE(c.check().isOk());
  });
}

} // namespace
} // namespace cgc::test

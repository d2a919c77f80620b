// Tests of `cgc train` by several ranks: processes with torchrun's variables, the reference
// executor, and the stand-in for NCCL.
#include "script.h"
#include "tests/paths.h"

#include <algorithm>
#include <functional>
#include <regex>
#include <thread>

namespace cgc::e2e {
namespace {

class TrainRanks : public ScriptTest {
protected:
  void compile(std::vector<std::string> more, const std::string &plan = "step.cgplan",
               const std::string &model = "mlp") {
    std::vector<std::string> arguments = {"compile", trainingModels() / (model + ".pt"),
                                          "-o",      plan,
                                          "--train", "forward",
                                          "--input", "x=f32[16,32]",
                                          "--input", "y=i64[16]",
                                          "--quiet"};
    if (std::ranges::find(more, "--optimizer") == more.end())
      more.insert(more.end(), {"--optimizer", "adamw,lr=0.01"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = cgc(arguments);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }

  /// The command of a rank: its arguments of `cgc train`, and how it runs.
  struct Rank {
    std::vector<std::string> arguments;
    std::string variable = "UNUSED=1"; ///< Of its environment.
    How how = {};
  };
  std::vector<Outcome> run(int count, const std::function<Rank(int)> &rankOf) {
    std::vector<Outcome> outcomes(count);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < count; ++rank)
      threads.emplace_back([&, rank] {
        const Rank one = rankOf(rank);
        const std::string ranks = std::to_string(count), number = std::to_string(rank);
        std::vector<std::string> command = {
            "env",
            "RANK=" + number,
            "LOCAL_RANK=" + number,
            "WORLD_SIZE=" + ranks,
            "LOCAL_WORLD_SIZE=" + ranks,
            "MASTER_ADDR=127.0.0.1",
            "MASTER_PORT=1",
            "TORCHELASTIC_RUN_ID=test",
            "TORCHELASTIC_RESTART_COUNT=0",
            "OMP_NUM_THREADS=1",
            one.variable,
            test::buildDir() / "bin/cgc",
            "train",
            "--executor",
            "reference",
            "--nccl",
            test::buildDir() / "lib/test_nccl",
            "--rendezvous",
            "ranks",
        };
        command.insert(command.end(), one.arguments.begin(), one.arguments.end());
        outcomes[rank] = runProgram(command, folder, one.how);
      });
    for (std::thread &thread : threads)
      thread.join();
    return outcomes;
  }
  /// The same arguments for all ranks.
  std::vector<Outcome> run(int count, std::vector<std::string> arguments) {
    return run(count, [&](int) { return Rank{arguments}; });
  }
  std::vector<std::string> arguments(std::vector<std::string> more,
                                     const std::string &plan = "step.cgplan",
                                     const std::string &timeout = "20") {
    std::vector<std::string> all = {plan, "--data", x_, y_, "--timeout", timeout};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::vector<double> losses(const Outcome &outcome) {
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const auto json = parseJson(outcome, "train");
    std::vector<double> values;
    for (const auto &point : json["losses"])
      values.push_back(point["loss"]);
    EXPECT_FALSE(values.empty());
    return values;
  }
  /// The losses of one process on the whole batch.
  std::vector<double> lossesOfOne(const std::string &plan, std::vector<std::string> more) {
    std::vector<std::string> command = {"train", "--executor", "reference"};
    for (const std::string &argument : arguments(std::move(more), plan))
      command.push_back(argument);
    return losses(cgc(command));
  }
  static void expectNear(const std::vector<double> &values, const std::vector<double> &wanted) {
    ASSERT_EQ(values.size(), wanted.size());
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(values[i], wanted[i], 1e-5) << "step " << i + 1;
  }

  const std::string x_ = "x=" + (trainingModels() / "x.npy").string();
  const std::string y_ = "y=" + (trainingModels() / "y.npy").string();
};

constexpr const char *kAnotherEnded = "another rank has ended, which ends the training of all";

const std::vector<std::string> kSteps = {"--steps",   "12",     "--log-every", "1",
                                         "--shuffle", "--seed", "3",           "--json"};

/// The steps of SGD, unlike those of Adam, depend on the scale of the gradients.
const std::vector<std::string> kSgd = {"--optimizer", "sgd,lr=0.05"};

TEST_F(TrainRanks, ShareABatchAsOneRankComputesIt) {
  for (const std::vector<std::string> &options :
       {std::vector<std::string>{}, kSgd, {"--clip-norm", "0.5"}, {"--grad-cache", "2"}}) {
    compile(options, "one.cgplan");
    const std::vector<double> wanted = lossesOfOne("one.cgplan", kSteps);
    for (const int ranks : {2, 4}) {
      std::vector<std::string> more = options;
      more.insert(more.end(), {"--ranks", std::to_string(ranks)});
      compile(more);
      const std::vector<Outcome> outcomes = run(ranks, arguments(kSteps));
      expectNear(losses(outcomes[0]), wanted);
      for (int rank = 1; rank < ranks; ++rank) {
        EXPECT_EQ(outcomes[rank].status, 0);
        EXPECT_EQ(outcomes[rank].out + outcomes[rank].err, "") << "only rank 0 reports";
      }
    }
  }
}

TEST_F(TrainRanks, OneProcessEvaluatesWhatSeveralHaveTrained) {
  std::vector<std::string> losses;
  for (const std::string ranks : {"1", "2"}) {
    compile(ranks == "1" ? std::vector<std::string>() : std::vector<std::string>{"--ranks", ranks});
    const Outcome outcome =
        cgc({"run", "step.cgplan", "--entry", "evaluate", "--executor", "reference", "--json",
             "--input", "x=random:0", "--input", "y=random:1"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    losses.push_back(parseJson(outcome, "run")["outputs"].dump());
  }
  EXPECT_EQ(losses[0], losses[1]);
  expectError(cgc({"run", "step.cgplan", "--entry", "step", "--executor", "reference", "--input",
                   "x=random:0", "--input", "y=random:1"}),
              2, {"entry 'step', bucket 0 is made for 2 ranks, and one runs it"});
}

/// Rank 0 validates alone, and draws numbers for the dropout, which the steps after it do not miss.
TEST_F(TrainRanks, ValidateWithoutAnEffectOnTheSteps) {
  for (const std::vector<std::string> &more : {std::vector<std::string>{"--data-parallel"},
                                               {"--ranks", "2"},
                                               {"--data-parallel", "--shard-optimizer"}}) {
    compile(more, "step.cgplan", "mlp_dropout");
    const auto train = [&](std::vector<std::string> options) {
      options.insert(options.end(), {"--steps", "6", "--log-every", "1", "--json"});
      return run(2, arguments(options));
    };
    const std::vector<Outcome> plain = train({}),
                               validated = train({"--validate", x_, y_, "--validate-every", "2"});
    for (const Outcome *outcome : {&plain[0], &validated[0], &validated[1]})
      ASSERT_EQ(outcome->status, 0) << outcome->err;
    EXPECT_EQ(losses(validated[0]), losses(plain[0]));
    EXPECT_EQ(parseJson(validated[0], "train")["validation_losses"].size(), 3u);
  }
  expectError(run(2, arguments({"--checkpoint", "./ranks"}))[0], 2,
              {"--checkpoint and --rendezvous name one folder, './ranks'"});
  expectError(run(2,
                  [&](int rank) {
                    return Rank{arguments(rank == 0 ? std::vector<std::string>{"--validate", x_, y_}
                                                    : std::vector<std::string>{})};
                  })[0],
              2, {"the ranks differ in --validate"});
}

TEST_F(TrainRanks, CompareAllPairsOfAContrastiveBatch) {
  const auto step = [&](const std::string &plan, std::vector<std::string> more) {
    more.insert(more.begin(),
                {"compile", trainingModels() / "shapes.pt", "-o", plan, "--train", "forward",
                 "--input", "image=f32[16,3,32,32]", "--input", "text=i64[16,8]", "--quiet"});
    more.insert(more.end(), kSgd.begin(), kSgd.end());
    const Outcome outcome = cgc(more);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  };
  const std::vector<std::string> data = {"--data",
                                         "image=" + (trainingModels() / "image.npy").string(),
                                         "text=" + (trainingModels() / "text.npy").string(),
                                         "--steps",
                                         "4",
                                         "--log-every",
                                         "1",
                                         "--json"};
  step("one.cgplan", {});
  std::vector<std::string> alone = {"train", "--executor", "reference", "one.cgplan"};
  alone.insert(alone.end(), data.begin(), data.end());
  const std::vector<double> wanted = losses(cgc(alone));
  for (const std::vector<std::string> &more :
       {std::vector<std::string>{"--ranks", "2"}, {"--ranks", "2", "--grad-cache", "2"}}) {
    step("two.cgplan", more);
    std::vector<std::string> each = {"two.cgplan", "--timeout", "60"};
    each.insert(each.end(), data.begin(), data.end());
    expectNear(losses(run(2, each)[0]), wanted);
  }
}

TEST_F(TrainRanks, AverageGradientsOfTheirOwnBatches) {
  // The mean of two batches, by ranks and by micro-batches.
  std::vector<std::string> twice = kSteps;
  twice.insert(twice.end(), {"--accumulate", "2"});
  for (std::vector<std::string> options : {std::vector<std::string>{}, kSgd}) {
    options.insert(options.end(), {"--data-parallel", "--accumulate"});
    compile(options);
    expectNear(losses(run(2, arguments(kSteps))[0]), lossesOfOne("step.cgplan", twice));
  }
}

TEST_F(TrainRanks, SynchronizeBatchNorm) {
  const auto steps = [](const std::string &checkpoint) {
    return std::vector<std::string>{"--steps",      "50",      "--log-every", "1",
                                    "--shuffle",    "--seed",  "3",           "--json",
                                    "--checkpoint", checkpoint};
  };
  // The largest difference of the running statistics of two checkpoints.
  const auto difference = [&] {
    const Outcome outcome = python(
        {"-c", "from safetensors.numpy import load_file\n"
               "one, other = (load_file(f'{run}/model.safetensors') for run in ('one', 'run'))\n"
               "names = [name for name in one if '.running_' in name]\n"
               "assert len(names) == 12\n"
               "print(max(abs(one[name] - other[name]).max() for name in names))"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return std::stod(outcome.out);
  };
  compile({}, "one.cgplan", "batch_norm");
  const std::vector<double> wanted = lossesOfOne("one.cgplan", steps("one"));
  for (const int ranks : {2, 4}) {
    compile({"--data-parallel", "--sync-batch-norm", "--batch", std::to_string(16 / ranks)},
            "step.cgplan", "batch_norm");
    expectNear(losses(run(ranks, arguments(steps("run")))[0]), wanted);
    EXPECT_LT(difference(), 1e-5) << ranks << " ranks";
  }
  compile({"--data-parallel", "--batch", "8"}, "step.cgplan", "batch_norm");
  const std::vector<double> local = losses(run(2, arguments(steps("run")))[0]);
  EXPECT_GT(std::abs(local.back() - wanted.back()), 1e-2);
  EXPECT_GT(difference(), 1e-2);
}

TEST_F(TrainRanks, SynchronizeBatchNormOfMicroBatches) {
  std::vector<std::string> twice = kSteps;
  twice.insert(twice.end(), {"--accumulate", "2"});
  compile({"--accumulate"}, "one.cgplan", "batch_norm");
  compile({"--accumulate", "--data-parallel", "--sync-batch-norm", "--batch", "8"}, "step.cgplan",
          "batch_norm");
  expectNear(losses(run(2, arguments(twice))[0]), lossesOfOne("one.cgplan", twice));
}

TEST_F(TrainRanks, GoOnFromACheckpointOfOtherRanks) {
  compile({"--data-parallel"});
  std::vector<Outcome> outcomes = run(2, arguments({"--steps", "2", "--checkpoint", "run"}));
  ASSERT_EQ(outcomes[0].status, 0) << outcomes[0].err;
  ASSERT_EQ(outcomes[1].status, 0) << outcomes[1].err;
  outcomes = run(4, arguments({"--steps", "1", "--resume", "run", "--json"}));
  ASSERT_EQ(outcomes[0].status, 0) << outcomes[0].err;
  EXPECT_EQ(parseJson(outcomes[0], "train")["first_step"], 3);
}

/// Moments and averages that ranks divide: the same bits as without.
TEST_F(TrainRanks, ShardTheOptimizer) {
  const auto train = [&](int ranks, const std::string &plan, const std::string &to,
                         std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--steps", "4", "--checkpoint", to});
    for (const Outcome &outcome : run(ranks, arguments(more, plan)))
      ASSERT_EQ(outcome.status, 0) << outcome.err;
  };
  const auto expectEqual = [&] {
    const Outcome outcome = python(
        {"-c", "from pathlib import Path\n"
               "from safetensors.numpy import load_file\n"
               "names = sorted(file.name for file in Path('whole').iterdir())\n"
               "assert names == sorted(file.name for file in Path('sharded').iterdir()), names\n"
               "for name in names:\n"
               "    one, other = (load_file(f'{run}/{name}') for run in ('whole', 'sharded'))\n"
               "    assert one.keys() == other.keys() and len(one) > 1, one.keys()\n"
               "    for key in one:\n"
               "        assert one[key].tobytes() == other[key].tobytes(), (name, key)\n"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  };
  using Options = std::vector<std::string>;
  struct Case {
    Options options, training = {};
    int ranks = 2;
  };
  for (const Case &one : {Case{{"--data-parallel", "--clip-norm", "0.5", "--ema", "0.9", "--groups",
                                "@vectors:weight_decay=0", "--clamp", "layers.0.bias=-0.01:0.01"}},
                          Case{{"--ranks", "2", "--autocast", "bf16", "--grad-cache", "2"}},
                          Case{{"--data-parallel", "--autocast", "bf16", "--ema", "0.9"}, {}, 3},
                          Case{{"--data-parallel", "--autocast", "fp16"}},
                          Case{{"--data-parallel", "--accumulate"}, {"--accumulate", "2"}},
                          Case{{"--data-parallel", "--batch", "8,16"}},
                          Case{{"--data-parallel", "--optimizer", "sgd,lr=0.1,momentum=0.9"}},
                          Case{{"--data-parallel", "--optimizer", "sgd,lr=0.1", "--ema", "0.9"}}}) {
    SCOPED_TRACE(testing::PrintToString(one.options));
    Options sharded = one.options;
    sharded.emplace_back("--shard-optimizer");
    compile(one.options, "whole.cgplan");
    compile(sharded, "sharded.cgplan");
    train(one.ranks, "whole.cgplan", "whole", one.training);
    train(one.ranks, "sharded.cgplan", "sharded", one.training);
    expectEqual();
  }
  // A checkpoint goes on with another number of ranks, and with a plan that divides nothing.
  compile({"--data-parallel"}, "whole.cgplan");
  compile({"--data-parallel", "--shard-optimizer"}, "sharded.cgplan");
  train(2, "sharded.cgplan", "run");
  for (const int ranks : {1, 3}) {
    train(ranks, "whole.cgplan", "whole", {"--resume", "run", "--resume-any-plan"});
    train(ranks, "sharded.cgplan", "sharded", {"--resume", "run"});
    expectEqual();
  }
}

TEST_F(TrainRanks, NameTheFirstDifference) {
  compile({"--data-parallel"});
  compile({"--data-parallel", "--clip-norm", "1"}, "other.cgplan");
  std::vector<Outcome> outcomes =
      run(3, [&](int rank) { return Rank{arguments({"--steps", rank == 1 ? "3" : "2"})}; });
  for (int rank = 0; rank < 3; ++rank)
    expectError(
        outcomes[rank], 2,
        {"rank " + std::to_string(rank) + ": the ranks differ in --steps: ", "rank 1 has '3'"});
  outcomes = run(2, [&](int rank) {
    return Rank{arguments({"--steps", "2"}, rank == 1 ? "other.cgplan" : "step.cgplan")};
  });
  expectError(outcomes[1], 2, {"the ranks differ in the plan"});
  const std::vector<std::vector<std::string>> differences = {
      {"--seed", "5"},      {"--lr", "0.5"},   {"--shuffle"},
      {"--log-every", "7"}, {"--fail-on-nan"}, {"--checkpoint", "own"}};
  for (const std::vector<std::string> &more : differences) {
    outcomes = run(2, [&](int rank) {
      std::vector<std::string> own = {"--steps", "2"};
      if (rank == 1)
        own.insert(own.end(), more.begin(), more.end());
      return Rank{arguments(own)};
    });
    expectError(outcomes[0], 2, {"the ranks differ in " + more[0] + ": "});
  }
  // Other values of the same plan, and fewer samples.
  const Outcome made = python({"-c",
                               "import sys, numpy, torch\n"
                               "model = torch.jit.load(sys.argv[1])\n"
                               "next(model.parameters()).data.add_(1)\n"
                               "model.save('moved.pt')\n"
                               "for name in 'xy':\n"
                               "    numpy.save(name, numpy.load(f'{sys.argv[2]}/{name}.npy')[:32])",
                               trainingModels() / "mlp.pt", trainingModels()});
  ASSERT_EQ(made.status, 0) << made.err;
  compile({"--data-parallel"}, "moved.cgplan", folder / "moved");
  outcomes = run(
      2, [&](int rank) { return Rank{arguments({}, rank == 1 ? "moved.cgplan" : "step.cgplan")}; });
  expectError(outcomes[0], 2, {"the ranks differ in the values in the plan"});
  outcomes = run(2, [&](int rank) {
    Rank one{arguments({"--steps", "2"})};
    if (rank == 1)
      std::ranges::copy(std::array{"x=x.npy", "y=y.npy"}, one.arguments.begin() + 2);
    return one;
  });
  expectError(outcomes[0], 2, {"the ranks differ in the number of samples: ", "rank 1 has '32'"});
}

TEST_F(TrainRanks, RefuseWhatDoesNotFit) {
  compile({});
  for (const Outcome &outcome : run(2, arguments({})))
    expectError(outcome, 2, {"has started 2 ranks", "--data-parallel"});
  compile({"--ranks", "4"});
  for (const Outcome &outcome : run(2, arguments({})))
    expectError(outcome, 2, {"the plan is made for 4 ranks", "has started 2"});
  expectError(cgc({"train", "step.cgplan", "--data", x_, y_, "--executor", "reference"}), 2,
              {"the plan is made for 4 ranks", "there is one"});
  compile({"--data-parallel"});
  for (const Outcome &outcome : run(5, arguments({})))
    expectError(outcome, 2, {"--data has 64 samples", "5 ranks needs 80"});
  for (const std::string &id : {std::string("12"), std::string(256, 'x')})
    expectError(cgc({"train", "step.cgplan", "--data", x_, y_, "--communicator-id", id}), 2,
                {"--communicator-id", "is no id; give 256 hexadecimal digits"});
  for (const Outcome &outcome : run(2, arguments({"--communicator-id", std::string(256, '0')})))
    expectError(outcome, 2, {"--rendezvous excludes --communicator-id"});
  const std::vector<Outcome> missing = run(2, [&](int rank) {
    return rank == 0 ? Rank{arguments({}, "step.cgplan", "2")} : Rank{{"--help"}};
  });
  EXPECT_NE(missing[0].status, 0);
  EXPECT_NE(missing[0].err.find("rank 1"), std::string::npos) << missing[0].err;
  expectError(cgc({"compile", trainingModels() / "mlp.pt", "-o", "p", "--train", "forward",
                   "--input", "x=f32[15,32]", "--input", "y=i64[15]", "--ranks", "2", "--quiet"}),
              2, {"a batch of 15 is not divisible into 2 ranks"});
  expectError(
      cgc({"compile", trainingModels() / "mlp.pt", "-o", "p", "--train", "forward", "--input",
           "x=f32[16,32]", "--input", "y=i64[16]", "--data-parallel", "--target", "cpu"}),
      2, {"several ranks train on GPUs"});
  const auto synchronized = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"compile", trainingModels() / "mlp.pt", "-o", "p", "--train", "forward", "--input",
                 "x=f32[16,32]", "--input", "y=i64[16]", "--quiet", "--sync-batch-norm"});
    return cgc(more);
  };
  expectError(synchronized({"--data-parallel"}), 2,
              {"no batch norm of the model takes statistics of the batch", "after train()"});
  expectError(synchronized({}), 2, {"--sync-batch-norm requires --data-parallel"});
  expectError(synchronized({"--ranks", "2"}), 2, {"--ranks excludes --sync-batch-norm"});
  expectError(synchronized({"--ranks", "2", "--data-parallel"}), 2,
              {"--data-parallel excludes --ranks"});
  const auto sharded = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"compile", trainingModels() / "mlp.pt", "-o", "p", "--train", "forward", "--input",
                 "x=f32[16,32]", "--input", "y=i64[16]", "--quiet", "--shard-optimizer"});
    return cgc(more);
  };
  expectError(sharded({}), 2, {"an optimizer is divided among ranks"});
  expectError(sharded({"--data-parallel"}), 2,
              {"the optimizer keeps no moments and no averages in f32 that ranks could divide"});
}

TEST_F(TrainRanks, EndWhenOneDiesAndKeepTheCheckpoint) {
  compile({"--data-parallel"});
  const std::vector<std::string> forever =
      arguments({"--steps", "100000000", "--log-every", "100000000", "--checkpoint", "run",
                 "--checkpoint-every", "50"},
                "step.cgplan", "600");
  const std::vector<Outcome> outcomes =
      run(3, [&](int) { return Rank{forever, "NCCL_TEST_FAULT=1:200:die"}; });
  for (const int rank : {0, 2}) {
    const std::string &err = outcomes[rank].err;
    EXPECT_NE(outcomes[rank].status, 0);
    EXPECT_NE(err.find("rank " + std::to_string(rank) + ": "), std::string::npos) << err;
    EXPECT_NE(err.find(kAnotherEnded), std::string::npos) << err;
    EXPECT_TRUE(std::regex_search(err, std::regex("; ranks? (0-)?1(-2)? ha(s|ve) "))) << err;
    EXPECT_EQ(err.find("checkpoint") != std::string::npos, rank == 0) << err; // Which writes it.
  }
  const std::vector<Outcome> resumed =
      run(2, arguments({"--steps", "1", "--resume", "run", "--json"}));
  ASSERT_EQ(resumed[0].status, 0) << resumed[0].err;
  EXPECT_EQ(int(parseJson(resumed[0], "train")["first_step"]) % 50, 1);
}

/// The same command again, as torchrun starts it after a failure.
TEST_F(TrainRanks, ARestartGoesOnFromTheLastCheckpoint) {
  compile({"--data-parallel"});
  const auto train = [&](const std::string &folder, const std::string &fault) {
    return run(2, [&](int) {
      return Rank{arguments({"--restartable", "--steps", "60", "--checkpoint", folder,
                             "--checkpoint-every", "20", "--shuffle", "--seed", "4", "--json"}),
                  fault};
    });
  };
  EXPECT_NE(train("run", "NCCL_TEST_FAULT=1:50:die")[0].status, 0);
  const std::vector<Outcome> again = train("run", "A=1"), whole = train("whole", "A=1");
  for (const Outcome *outcome : {&again[0], &whole[0]})
    ASSERT_EQ(outcome->status, 0) << outcome->err;
  const auto restarted = parseJson(again[0], "train");
  const int first = restarted["first_step"];
  EXPECT_GT(first, 20);
  EXPECT_EQ(first % 20, 1);
  EXPECT_EQ(int(restarted["steps"]), 61 - first);
  EXPECT_EQ(readFile(folder / "run/model.safetensors"),
            readFile(folder / "whole/model.safetensors"));
  const Outcome after = train("run", "A=1")[0];
  ASSERT_EQ(after.status, 0) << after.err;
  EXPECT_EQ(int(parseJson(after, "train")["steps"]), 0);
  expectError(cgc({"train", "step.cgplan", "--data", x_, y_, "--restartable"}), 2,
              {"--restartable needs --checkpoint"});
  // With another plan, as the error of the first try says.
  compile({"--data-parallel", "--clip-norm", "1"}, "other.cgplan");
  std::vector<std::string> more = {"--restartable", "--steps", "62", "--checkpoint", "run"};
  expectError(run(2, arguments(more, "other.cgplan"))[0], 2, {"load it with --resume-any-plan"});
  more.insert(more.end(), {"--resume-any-plan", "--json"});
  const Outcome other = run(2, arguments(more, "other.cgplan"))[0];
  ASSERT_EQ(other.status, 0) << other.err;
  EXPECT_EQ(int(parseJson(other, "train")["first_step"]), 61);
}

TEST_F(TrainRanks, StopTogetherWhenOneIsAskedTo) {
  compile({"--data-parallel"});
  const std::vector<std::string> forever =
      arguments({"--steps", "100000000", "--log-every", "20", "--checkpoint", "run", "--json"});
  const std::vector<Outcome> outcomes = run(2, [&](int rank) {
    Rank one{forever};
    if (rank == 0)
      one.how.killOnPhase = "loss";
    return one;
  });
  EXPECT_EQ(outcomes[0].status, 128 + SIGINT) << outcomes[0].err;
  EXPECT_EQ(outcomes[1].status, 128 + SIGINT) << outcomes[1].err;
  const auto json = parseJson(outcomes[0], "train");
  EXPECT_EQ(int(json["steps"]) % 20, 0);
  EXPECT_TRUE(fs::exists(folder / "run/model.safetensors"));
}

TEST_F(TrainRanks, TrainFromC99) {
  compile({"--data-parallel"});
  compile({"--data-parallel", "--clip-norm", "1"}, "other.cgplan");
  const Outcome outcome = runProgram({test::buildDir() / "bin/cgc_test_c_ranks", "step.cgplan",
                                      "other.cgplan", test::buildDir() / "lib/test_nccl", "run"},
                                     folder);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(fs::exists(folder / "run/model.safetensors"));
}

TEST_F(TrainRanks, SeeANaNOfOneRank) {
  const std::string nan = "x=" + (trainingModels() / "nan.npy").string();
  // Rank 0 does not wait for states of rank 1 either, which does not know of its failure.
  for (const bool isSharded : {false, true}) {
    compile({"--data-parallel", isSharded ? "--shard-optimizer" : "--accumulate"});
    const std::vector<Outcome> outcomes =
        run(2, {"step.cgplan", "--data", nan, y_, "--timeout", "600", "--fail-on-nan", "--steps",
                "4", "--checkpoint", "run" + std::to_string(isSharded)});
    EXPECT_EQ(outcomes[0].err.rfind("cgc: error: rank 0: the batch of step 2 has a NaN", 0), 0u)
        << outcomes[0].err;
    EXPECT_NE(outcomes[1].status, 0);
    for (const std::string part :
         {"rank 1: the batch of step 2", kAnotherEnded, "; rank 0 has ended"})
      EXPECT_NE(outcomes[1].err.find(part), std::string::npos) << outcomes[1].err;
    EXPECT_EQ(fs::exists(folder / ("run" + std::to_string(isSharded))), !isSharded);
  }
}

} // namespace
} // namespace cgc::e2e

// Tests of `cgc train`: losses fall, checkpoints continue bit for bit, and wrong arguments and data
// are named.
#include "script.h"
#include "tests/paths.h"

namespace cgc::e2e {
namespace {

class Train : public ScriptTest {
protected:
  /// Compiles the step of the multilayer perceptron to mlp.cgplan.
  Outcome compile(const std::vector<std::string> &more, const std::string &model = "mlp.pt",
                  const std::string &target = "cpu") {
    std::vector<std::string> arguments = {"compile",  trainingModels() / model,
                                          "-o",       "mlp.cgplan",
                                          "--train",  "forward",
                                          "--target", target,
                                          "--input",  "x=f32[16,32]",
                                          "--input",  "y=i64[16]"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cgc(arguments);
  }
  void makeStep(std::vector<std::string> more = {}, const std::string &model = "mlp.pt",
                const std::string &target = "cpu") {
    more.insert(more.begin(), {"--optimizer", "adamw,lr=0.01"});
    const Outcome outcome = compile(more, model, target);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }
  /// Runs cgc train on mlp.cgplan and its data.
  Outcome train(std::vector<std::string> more, const How &how = {}) {
    std::vector<std::string> arguments = {"train", "mlp.cgplan", "--data", x_, y_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cgc(arguments, how);
  }
  std::vector<double> losses(const nlohmann::json &json) {
    std::vector<double> values;
    for (const auto &point : json["losses"])
      values.push_back(point["loss"]);
    return values;
  }

  const std::string x_ = "x=" + (trainingModels() / "x.npy").string();
  const std::string y_ = "y=" + (trainingModels() / "y.npy").string();
};

TEST_F(Train, LossesFall) {
  makeStep();
  const Outcome outcome =
      train({"--steps", "60", "--log-every", "1", "--json", "--curve", "loss.svg"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = parseJson(outcome, "train");
  EXPECT_EQ(json["first_step"], 1);
  EXPECT_EQ(json["steps"], 60);
  EXPECT_EQ(json["batch"], 16);
  EXPECT_EQ(json["interrupted"], false);
  ASSERT_EQ(losses(json).size(), 60u);
  EXPECT_NEAR(losses(json).front(), 2.3, 0.3); // ln(10), that of an untrained classifier.
  EXPECT_LT(losses(json).back(), 0.5);
  EXPECT_EQ(json["memory"].size(), 5u);
  EXPECT_NE(readFile(folder / "loss.svg").find("<polyline"), std::string::npos);
}

TEST_F(Train, ResumingEqualsNotStopping) {
  makeStep();
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--log-every", "1", "--json"});
    const Outcome outcome = train(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return losses(parseJson(outcome, "train"));
  };
  const std::vector<double> whole =
      run({"--steps", "11", "--shuffle", "--seed", "3", "--checkpoint", "whole"});
  std::vector<double> parts =
      run({"--steps", "6", "--shuffle", "--seed", "3", "--checkpoint", "part"});
  const std::vector<double> rest =
      run({"--steps", "5", "--resume", "part", "--checkpoint", "part"});
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(parts, whole);
  EXPECT_EQ(readFile(folder / "part/model.safetensors"),
            readFile(folder / "whole/model.safetensors"));
}

/// Validation changes no step, though the model draws random numbers.
TEST_F(Train, ValidatesSamplesThatAreNotTrained) {
  makeStep({}, "mlp_dropout.pt");
  std::vector<float> x(20 * 32);
  std::vector<int64_t> y(20);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i % 7) - 3;
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = static_cast<int64_t>(i % 10);
  writeNpy(folder / "held_x.npy", "<f4", {20, 32}, x);
  writeNpy(folder / "held_y.npy", "<i8", {20}, y);
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--steps", "5", "--log-every", "1", "--json", "--checkpoint", "run"});
    const Outcome outcome = train(more);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return parseJson(outcome, "train");
  };
  const auto without = run({});
  EXPECT_FALSE(without.contains("validation_losses"));
  const auto json = run({"--validate", "x=held_x.npy", "y=held_y.npy", "--validate-every", "2",
                         "--curve", "loss.svg"});
  EXPECT_EQ(losses(json), losses(without));
  EXPECT_EQ(json["validation_samples"], 16) << "whole batches";
  std::vector<int> steps;
  for (const auto &point : json["validation_losses"])
    steps.push_back(point["step"]);
  EXPECT_EQ(steps, (std::vector<int>{2, 4, 5}));
  EXPECT_NE(readFile(folder / "loss.svg").find(">validation</text>"), std::string::npos);
  EXPECT_EQ(run({"--validate", "x=held_x.npy", "y=held_y.npy"})["validation_losses"].size(), 5u);

  writeNpy(folder / "batch_x.npy", "<f4", {16, 32}, std::vector<float>(x.begin(), x.begin() + 512));
  writeNpy(folder / "batch_y.npy", "<i8", {16}, std::vector<int64_t>(y.begin(), y.begin() + 16));
  const Outcome evaluated =
      cgc({"run", "mlp.cgplan", "--entry", "evaluate", "--checkpoint", "run", "--input",
           "x=@batch_x.npy", "--input", "y=@batch_y.npy", "--output", "loss.npy"});
  ASSERT_EQ(evaluated.status, 0) << evaluated.err;
  EXPECT_EQ(json["validation_losses"][2]["loss"], double(npyFloats(folder / "loss.npy").at(0)));

  const Outcome text = train({"--steps", "2", "--validate", "x=held_x.npy", "y=held_y.npy"});
  EXPECT_NE(text.out.find("loss of 16 validation samples"), std::string::npos) << text.out;
  expectError(train({"--validate-every", "2"}), 2, {"--validate-every", "--validate"});
  expectError(train({"--validate", "x=held_x.npy"}), 2, {"--validate", "no samples of input 'y'"});
  y[3] = 10;
  writeNpy(folder / "held_y.npy", "<i8", {20}, y);
  expectError(train({"--validate", "x=held_x.npy", "y=held_y.npy"}), 2,
              {"batch 1 of --validate", "input 'y': element 3 is 10"});
}

TEST_F(Train, NamesOptionsOfCompileThatDoNotFit) {
  expectError(compile({"--groups", "layer.*:weight_decay=0"}), 2,
              {"'layer.*'", "matches no trained parameter"});
  expectError(compile({"--optimizer", "sgd,lr=1e39"}), 2, {"'1e39'", "a finite f32 number"});
  expectError(compile({"--ema", "0.99999999999"}), 2, {"below 1 in f32"});
  expectError(compile({"--schedule", "step,step_size=2,step_factor=0"}), 2, {"step_factor"});
  expectError(compile({"--loss", "-1"}), 2, {"--loss"});
  expectError(compile({"--precision", "fp16"}), 2, {"--precision fp16", "--autocast"});
  EXPECT_FALSE(fs::exists(folder / "mlp.cgplan"));
}

TEST_F(Train, NamesOptionsOfTheOptimizerAsTheyAreTyped) {
  const auto refuse = [&](const std::string &option, const std::string &value,
                          const std::vector<std::string> &parts) {
    std::vector<std::string> expected = {option};
    expected.insert(expected.end(), parts.begin(), parts.end());
    const Outcome outcome = compile({option, value});
    expectError(outcome, 2, expected);
    EXPECT_EQ(outcome.err.find("pass '"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("of optimize"), std::string::npos) << outcome.err;
  };
  refuse("--optimizer", "AdamW", {"sgd, adam, adamw", "'AdamW'", "did you mean 'adamw'?"});
  refuse("--optimizer", "lr=0.1", {"begins with one of sgd, adam, adamw", "'lr=0.1'"});
  refuse("--optimizer", "adamw,learning_rate=0.1", {"'learning_rate=0.1'", "lr, beta1, beta2"});
  refuse("--optimizer", "adamw,betas=(0.9,0.98)", {"'betas=(0.9'", "lr, beta1, beta2"});
  refuse("--optimizer", "adamw,0.1", {"'0.1'", "NAME=VALUE"});
  refuse("--optimizer", "adamw,momentum=0.9", {"adamw does not take 'momentum=0.9'"});
  refuse("--optimizer", "sgd,lr=1,lr=2", {"has 'lr' twice"});
  refuse("--optimizer", "sgd,weight_decay=x", {"weight_decay of --optimizer is 'x'"});
  refuse("--optimizer", "adamw,beta1=1", {"beta1 of --optimizer has to be below 1"});
  refuse("--optimizer", "sgd,nesterov=True", {"nesterov of --optimizer is 'True'", "false, true"});
  refuse("--schedule", "cosin,steps=9", {"'cosin'", "did you mean 'cosine'?"});
  refuse("--schedule", "cosine,final=0", {"'final=0'", "final_factor"});
  refuse("--schedule", "cosine", {"steps of --schedule has to be more than the warmup"});
  refuse("--groups", "a*:weight_decay=0,b*:weight_decay=0", {"has a ','", "groups by ';'"});
  refuse("--groups", "a*:decay=0", {"'a*:decay=0'", "weight_decay and lr_scale"});
  refuse("--clamp", "a=0:1,b=0:1", {"has a ','", "separated by ';'"});
  refuse("--clip-norm", "-1", {"'-1'", "not negative"});
}

/// What a plan trains is in the plan.
TEST_F(Train, SaysWhichOptimizerThePlanHas) {
  const std::string sgd = "the step of --train forward --optimizer sgd,lr=0.001";
  const Outcome plain = compile({});
  ASSERT_EQ(plain.status, 0) << plain.err;
  EXPECT_NE(plain.err.find("--optimizer is not given: the step is that of SGD"), std::string::npos)
      << plain.err;
  EXPECT_NE(plain.out.find(sgd + "\n"), std::string::npos) << plain.out;
  const Outcome given =
      compile({"--optimizer", "adamw,beta2=0.98", "--groups", "@vectors:weight_decay=0",
               "--clip-norm", "0.5", "--schedule", "cosine,steps=8,warmup=2", "--ema", "0.9"});
  ASSERT_EQ(given.status, 0) << given.err;
  EXPECT_EQ(given.err.find("--optimizer is not given"), std::string::npos) << given.err;
  const std::string all = "--train forward --optimizer adamw,lr=0.001,beta2=0.98 --schedule "
                          "cosine,warmup=2,steps=8 --clip-norm 0.5 --ema 0.9 --groups "
                          "@vectors:weight_decay=0";
  EXPECT_NE(given.out.find(all), std::string::npos) << given.out;
  const Outcome inspected = cgc({"inspect", "mlp.cgplan"});
  EXPECT_NE(inspected.out.find(all), std::string::npos) << inspected.out;
  EXPECT_EQ(parseJson(cgc({"inspect", "mlp.cgplan", "--json"}), "plan")["training"], all);
}

/// All entries of a plan are explained and dumped, not only the step.
TEST_F(Train, InstrumentsTheCompilationOfEachEntry) {
  makeStep({"--accumulate", "--explain", "simplify-gradients", "--dump-dir", "dump"});
  for (const char *graph :
       {"step_0", "gradient_first_0", "gradient_next_0", "evaluate_0", "update"})
    EXPECT_TRUE(std::ranges::any_of(fs::directory_iterator(folder / "dump"),
                                    [&](const fs::directory_entry &file) {
                                      return file.path().filename().string().ends_with(
                                          "-cse." + std::string(graph) + ".cgir");
                                    }))
        << graph;
  const Outcome refused = compile({"--explain", "select-rows"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("'select-rows' is to be explained and does not run"),
            std::string::npos)
      << refused.err;
}

TEST_F(Train, TrainsFromC99) {
  for (const std::string target : {"cpu", "cuda"}) {
    makeStep({"--accumulate"}, "mlp.pt", target);
    std::vector<std::string> arguments = {test::buildDir().string() + "/bin/cgc_test_c_trainer",
                                          "mlp.cgplan", "run_" + target};
    if (target == "cuda")
      arguments.emplace_back("reference");
    const Outcome outcome = runProgram(arguments, folder);
    EXPECT_EQ(outcome.status, 0) << target << ": " << outcome.err;
  }
}

/// A label of the third batch that is no class ends the training there, with the checkpoint of the
/// steps before it.
TEST_F(Train, LabelsOutOfRangeAreNamed) {
  for (const std::string target : {"cpu", "cuda"}) {
    makeStep({}, "mlp.pt", target);
    const auto run = [&](int64_t label) {
      std::vector<int64_t> labels(64);
      for (size_t i = 0; i < labels.size(); ++i)
        labels[i] = static_cast<int64_t>(i % 10);
      labels[40] = label;
      writeNpy(folder / "labels.npy", "<i8", {64}, labels);
      std::vector<std::string> arguments = {"train", "mlp.cgplan",         "--data",
                                            x_,      "y=labels.npy",       "--checkpoint",
                                            "run",   "--checkpoint-every", "2"};
      if (target == "cuda")
        arguments.insert(arguments.end(), {"--executor", "reference"});
      return cgc(arguments);
    };
    for (const int64_t label : {int64_t(10), int64_t(-7), int64_t(-1), int64_t(1000000000000)}) {
      expectError(run(label), 2,
                  {"the batch of step 3", "input 'y': element 8 is " + std::to_string(label),
                   "an index from 0 to 9, or -100"});
      const Outcome rest = train({"--resume", "run", "--steps", "1", "--json", "--executor",
                                  target == "cuda" ? "reference" : "graph"});
      ASSERT_EQ(rest.status, 0) << rest.err;
      EXPECT_EQ(parseJson(rest, "train")["first_step"], 3) << target;
    }
    EXPECT_EQ(run(-100).status, 0) << target << ": the loss ignores it";
  }
}

/// A training that fails writes a checkpoint of the steps before, and goes on bit for bit.
TEST_F(Train, AFailureWritesACheckpoint) {
  makeStep();
  std::vector<int64_t> labels(64);
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<int64_t>(i % 10);
  writeNpy(folder / "good.npy", "<i8", {64}, labels);
  labels[40] = 10;
  writeNpy(folder / "bad.npy", "<i8", {64}, labels);
  const auto run = [&](const std::string &y, std::vector<std::string> more) {
    more.insert(more.begin(), {"train", "mlp.cgplan", "--data", x_, "y=" + y});
    return cgc(more);
  };
  const auto lossesOf = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--log-every", "1", "--json"});
    const Outcome outcome = run("good.npy", more);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return losses(parseJson(outcome, "train"));
  };
  expectError(run("bad.npy", {"--steps", "4", "--checkpoint", "run"}), 2,
              {"the batch of step 3", "the checkpoint 'run' is that of step 2"});
  const std::vector<double> rest = lossesOf({"--steps", "2", "--resume", "run"}),
                            whole = lossesOf({"--steps", "4"});
  EXPECT_EQ(rest, std::vector<double>(whole.begin() + 2, whole.end()));
  expectError(run("bad.npy", {"--steps", "1", "--resume", "run", "--checkpoint", "run"}), 2,
              {"the batch of step 3", "nothing was written to 'run'"});
}

TEST_F(Train, ParametersThatAreNotFiniteLeaveTheCheckpoint) {
  makeStep();
  ASSERT_EQ(train({"--steps", "2", "--checkpoint", "run"}).status, 0);
  const std::string before = readFile(folder / "run/model.safetensors");
  const std::vector<std::string> diverge = {"--steps",  "8",   "--lr",         "1e30",
                                            "--resume", "run", "--checkpoint", "run"};
  expectError(
      train(diverge), 1,
      {"has a NaN or an infinity", "lower the learning rate", "nothing was written to 'run'"});
  EXPECT_EQ(readFile(folder / "run/model.safetensors"), before);
  std::vector<std::string> often = diverge;
  often.insert(often.end(), {"--checkpoint-every", "1"});
  expectError(train(often), 1,
              {"has a NaN or an infinity", "the checkpoint 'run' is that of step"});
  EXPECT_EQ(train({"--steps", "1", "--resume", "run"}).status, 0);
}

TEST_F(Train, RunNamesALabelOutOfRange) {
  for (const std::string target : {"cpu", "cuda"}) {
    makeStep({}, "mlp.pt", target);
    std::vector<int64_t> labels(16);
    labels[5] = 99;
    writeNpy(folder / "labels.npy", "<i8", {16}, labels);
    std::vector<float> x(16 * 32);
    writeNpy(folder / "batch.npy", "<f4", {16, 32}, x);
    std::vector<std::string> arguments = {"run",     "mlp.cgplan",   "--entry", "evaluate",
                                          "--input", "x=@batch.npy", "--input", "y=@labels.npy"};
    if (target == "cuda")
      arguments.insert(arguments.end(), {"--executor", "reference"});
    expectError(cgc(arguments), 2, {"input 'y': element 5 is 99", "from 0 to 9, or -100"});
  }
}

TEST_F(Train, ADamagedNoteOfACheckpointIsRefused) {
  makeStep();
  ASSERT_EQ(train({"--steps", "2", "--checkpoint", "run"}).status, 0);
  const fs::path file = folder / "run/optimizer.safetensors";
  std::string text = readFile(file);
  const std::string note = R"("note.data.batch":"2")";
  ASSERT_NE(text.find(note), std::string::npos);
  text[text.find(note) + note.size() - 2] = 'x';
  writeFile(file, text);
  const Outcome outcome = train({"--steps", "2", "--resume", "run"});
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.err.find("the note data.batch 'x', which is no number"), std::string::npos)
      << outcome.err;
}

TEST_F(Train, AnInterruptionWritesACheckpoint) {
  makeStep();
  const Outcome outcome = train({"--steps", "1000000", "--log-every", "10", "--checkpoint", "run"},
                                {.killOnPhase = "step 20,"});
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_NE(outcome.out.find("interrupted; the last step is complete"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder / "run/model.safetensors"));
  const Outcome next = train({"--steps", "1", "--resume", "run", "--json"});
  ASSERT_EQ(next.status, 0) << next.err;
  EXPECT_GT(parseJson(next, "train")["first_step"], 20);
}

/// Four batches of 4 samples make the step of one batch of 16, as the loss is a mean.
TEST_F(Train, AccumulatesMicroBatches) {
  makeStep({"--accumulate", "--batch", "4,16"});
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--log-every", "1", "--json"});
    const Outcome outcome = train(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return parseJson(outcome, "train");
  };
  const auto whole = run({"--batch", "16", "--steps", "8"});
  const auto parts = run({"--batch", "4", "--accumulate", "4", "--steps", "8"});
  EXPECT_EQ(parts["batch"], 16);
  ASSERT_EQ(losses(parts).size(), 8u);
  for (size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(losses(parts)[i], losses(whole)[i], 1e-4) << i;
  // Without --steps, a pass.
  EXPECT_EQ(run({"--batch", "4", "--accumulate", "8"})["steps"], 2);
}

/// An interruption keeps the micro-batches of the step.
TEST_F(Train, ResumingBetweenMicroBatchesEqualsNotStopping) {
  makeStep({"--accumulate"});
  const std::vector<std::string> how = {"--accumulate", "5000", "--log-every", "1", "--json"};
  const auto run = [&](std::vector<std::string> arguments, const How &with = {}) {
    arguments.insert(arguments.end(), how.begin(), how.end());
    return train(arguments, with);
  };
  int steps = 0, microBatches = 0;
  for (int i = 0; i < 10 && microBatches == 0; ++i) { // The signal may come between two steps.
    const Outcome stopped = run({"--steps", "1000000", "--shuffle", "--checkpoint", "part"},
                                {.killOnPhase = "step 1,"});
    ASSERT_EQ(stopped.status, 130) << stopped.err;
    const auto json = parseJson(stopped, "train");
    steps = json["steps"];
    microBatches = json["micro_batches"];
  }
  ASSERT_GT(microBatches, 0);
  expectError(train({"--steps", "1", "--resume", "part"}), 2, {"--accumulate"});
  const Outcome rest = run({"--steps", "1", "--resume", "part", "--checkpoint", "part"});
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_EQ(parseJson(rest, "train")["first_step"], steps + 1);
  const Outcome whole =
      run({"--steps", std::to_string(steps + 1), "--shuffle", "--checkpoint", "whole"});
  ASSERT_EQ(whole.status, 0) << whole.err;
  EXPECT_EQ(losses(parseJson(rest, "train")).back(), losses(parseJson(whole, "train")).back());
  for (const char *file : {"/model.safetensors", "/optimizer.safetensors"})
    EXPECT_EQ(readFile(folder / ("part" + std::string(file))),
              readFile(folder / ("whole" + std::string(file))));
}

TEST_F(Train, FindsNanInTheData) {
  makeStep();
  const std::string nan = "x=" + (trainingModels() / "nan.npy").string();
  const std::vector<std::string> arguments = {"train", "mlp.cgplan", "--data", nan, y_, "--json"};
  const Outcome counted = cgc(arguments);
  ASSERT_EQ(counted.status, 0) << counted.err;
  EXPECT_EQ(parseJson(counted, "train")["non_finite_batches"], 1);
  EXPECT_NE(counted.err.find("the batch of step 3 has a NaN"), std::string::npos) << counted.err;
  std::vector<std::string> failing = arguments;
  failing.back() = "--fail-on-nan";
  expectError(cgc(failing), 1, {"the batch of step 3 has a NaN", "leave --fail-on-nan out"});
}

/// A failure leaves the last checkpoint that was written on the way.
TEST_F(Train, WritesCheckpointsOnTheWay) {
  makeStep();
  const std::string nan = "x=" + (trainingModels() / "nan.npy").string();
  const Outcome failed = cgc({"train", "mlp.cgplan", "--data", nan, y_, "--fail-on-nan",
                              "--checkpoint", "run", "--checkpoint-every", "2"});
  expectError(failed, 1, {"the batch of step 3 has a NaN"});
  const Outcome rest = train({"--steps", "2", "--resume", "run", "--log-every", "1", "--json"});
  ASSERT_EQ(rest.status, 0) << rest.err;
  const auto json = parseJson(rest, "train");
  EXPECT_EQ(json["first_step"], 3);
  const Outcome whole = train({"--steps", "4", "--log-every", "1", "--json"});
  const std::vector<double> all = losses(parseJson(whole, "train"));
  EXPECT_EQ(losses(json), std::vector<double>(all.begin() + 2, all.end()));
}

/// The loss is the first output of the step, wherever the method returns it.
TEST_F(Train, TheLossMayBeAnyOutput) {
  std::vector<float> x(32);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i % 5) - 2;
  writeNpy(folder / "x.npy", "<f4", {4, 8}, x);
  writeNpy(folder / "y.npy", "<i8", {4}, std::vector<int64_t>{0, 1, 2, 3});
  const std::string model = trainingModels() / "integer.pt";
  const Outcome compiled = cgc({"compile", model, "-o", "two.cgplan", "--train", "forward",
                                "--target", "cpu", "--input", "x=f32[4,8]", "--input", "y=i64[4]",
                                "--loss", "1", "--accumulate", "--recompute", "cheap"});
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const Outcome trained = cgc({"train", "two.cgplan", "--data", "x=x.npy", "y=y.npy", "--steps",
                               "3", "--against", model, "--log-every", "1", "--json"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  const auto compared = parseJson(trained, "train");
  ASSERT_EQ(compared["losses"].size(), 3u);
  for (const auto &point : compared["losses"])
    EXPECT_NEAR(point["loss"], double(point["libtorch_loss"]), 1e-4);
  // Of the whole data, which is also the batch of the next step.
  const Outcome validated =
      cgc({"train", "two.cgplan", "--data", "x=x.npy", "y=y.npy", "--validate", "x=x.npy",
           "y=y.npy", "--steps", "3", "--log-every", "1", "--json"});
  ASSERT_EQ(validated.status, 0) << validated.err;
  const auto json = parseJson(validated, "train");
  for (size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(json["validation_losses"][i]["loss"], double(json["losses"][i + 1]["loss"]), 1e-4);
}

TEST_F(Train, WritesNoFileThatItReads) {
  makeStep();
  fs::copy_file(trainingModels() / "x.npy", folder / "x.npy");
  const std::string before = readFile(folder / "x.npy");
  expectError(cgc({"train", "mlp.cgplan", "--data", "x=x.npy", y_, "--curve", "x.npy"}), 2,
              {"x.npy", "--curve"});
  EXPECT_EQ(readFile(folder / "x.npy"), before);
  ASSERT_EQ(train({"--steps", "1", "--checkpoint", "run"}).status, 0);
  for (const char *option : {"--checkpoint", "--resume"})
    expectError(train({"--steps", "1", option, "run", "--curve", "run/model.safetensors"}), 2,
                {"run/model.safetensors", "--curve"});
  expectError(train({"--checkpoint", "new", "--curve", "new"}), 2, {"new", "--curve"});
}

TEST_F(Train, LibTorchComputesWithAutocastToo) {
  makeStep({"--autocast", "bf16"});
  const Outcome trained = train(
      {"--steps", "10", "--against", trainingModels() / "mlp.pt", "--log-every", "1", "--json"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  const auto json = parseJson(trained, "train");
  ASSERT_EQ(json["losses"].size(), 10u);
  for (const auto &point : json["losses"])
    EXPECT_NEAR(point["loss"], double(point["libtorch_loss"]), 0.02) << point["step"];
}

TEST_F(Train, CompareNamesTheVerbForTrainingPlans) {
  makeStep();
  expectError(cgc({"compare", "mlp.cgplan", trainingModels() / "mlp.pt"}), 2,
              {"'mlp.cgplan' is a training plan", "cgc train --against"});
}

TEST_F(Train, FailsOnALossThatIsNoNumber) {
  makeStep();
  EXPECT_EQ(train({"--steps", "8", "--lr", "1e30"}).status, 0);
  expectError(train({"--steps", "8", "--lr", "1e30", "--fail-on-nan"}), 1,
              {"the loss of step", "lower the learning rate"});
}

TEST_F(Train, TheSeedIsThatOfDropout) {
  makeStep({}, "mlp_dropout.pt");
  const auto run = [&](const std::string &seed) {
    return losses(
        parseJson(train({"--steps", "3", "--seed", seed, "--log-every", "1", "--json"}), "train"));
  };
  const std::vector<double> first = run("1");
  EXPECT_EQ(run("1"), first);
  EXPECT_NE(run("2"), first);
}

TEST_F(Train, NamesWrongArguments) {
  makeStep();
  expectError(train({"--lr", "fast"}), 2, {"--lr", "'fast' is no learning rate"});
  for (const std::string bad : {"nan", "inf", "-1", "1e39", "", "1x"})
    expectError(train({"--lr", bad}), 2, {"'" + bad + "' is no learning rate", "give an f32"});
  expectError(train({"--lr", "1,2"}), 2, {"--lr", "has 1 elements, not 2", "give one number"});
  expectError(train({"--batch", "8"}), 2, {"--batch 8", "has a step for 16"});
  expectError(train({"--accumulate", "0"}), 2, {"--accumulate"});
  expectError(train({"--accumulate", "2"}), 2, {"mlp.cgplan", "--train --accumulate"});
  expectError(train({"--checkpoint-every", "2"}), 2, {"needs --checkpoint"});
  expectError(train({"--checkpoint", "no/such"}), 1, {"--checkpoint no/such", "make it first"});
  fs::create_directory(folder / "results");
  writeFile(folder / "results/notes.txt", "");
  // Before the first step, not after the last.
  expectError(train({"--steps", "1000000000", "--checkpoint", "results"}), 2,
              {"--checkpoint", "'results' is no checkpoint", "notes.txt", "another folder"});
  expectError(train({"--checkpoint", "mlp.cgplan"}), 2, {"'mlp.cgplan' exists and is no folder"});
  expectError(train({"--resume", "none"}), 3, {"none"});
  expectError(train({"--resume", "none", "--shuffle"}), 2, {"--resume", "--shuffle"});
  expectError(cgc({"train", "mlp.cgplan", "--data", x_}), 2, {"no samples of input 'y'"});
  writeNpy(folder / "wide.npy", "<f4", {64, 33}, std::vector<float>(64 * 33));
  expectError(cgc({"train", "mlp.cgplan", "--data", "x=wide.npy", y_}), 2,
              {"wide.npy", "f32[64,33]", "input 'x' takes f32[N,32]", "convert it"});
  expectError(cgc({"train", "mlp.cgplan", "--data", "x=none.npy"}), 3, {"none.npy"});
  makePlan();
  expectError(cgc({"train", "plan.cgplan", "--data", x_}), 2,
              {"is no training plan", "cgc compile --train"});
}

TEST_F(Train, NamesOtherCheckpoints) {
  makeStep();
  ASSERT_EQ(train({"--steps", "1", "--checkpoint", "run"}).status, 0);
  makeStep({"--ema", "0.9"});
  expectError(train({"--resume", "run"}), 2, {"'run': ", "it has no averages", "plan that wrote"});
  makeStep({"--clip-norm", "1"});
  expectError(train({"--resume", "run"}), 2, {"'run': ", "of another plan with the same states"});
  makeStep();
  fs::resize_file(folder / "run/optimizer.safetensors", 1000);
  expectError(train({"--resume", "run"}), 3, {"run/optimizer.safetensors", "cut short"});
}

/// A plan with another schedule and batch continues a checkpoint at the same sample on request.
TEST_F(Train, ResumesFromAnotherPlanOnRequest) {
  makeStep({"--batch", "8,16"});
  ASSERT_EQ(train({"--batch", "8", "--steps", "2", "--checkpoint", "run"}).status, 0);
  const Outcome one = train({"--batch", "16", "--steps", "1", "--resume", "run", "--json"});
  ASSERT_EQ(one.status, 0) << one.err;
  makeStep({"--clip-norm", "1e6"});
  expectError(train({"--resume", "run"}), 2, {"load it with --resume-any-plan"});
  const Outcome any = train({"--steps", "1", "--resume", "run", "--resume-any-plan", "--json"});
  ASSERT_EQ(any.status, 0) << any.err;
  EXPECT_NEAR(losses(parseJson(any, "train"))[0], losses(parseJson(one, "train"))[0], 1e-5);
  expectError(train({"--resume-any-plan"}), 2, {"--resume-any-plan", "--resume"});
}

/// Weights of a checkpoint are the start of another training, and those of a run of `evaluate`.
TEST_F(Train, WeightsAreTheStart) {
  makeStep();
  ASSERT_EQ(train({"--steps", "4", "--checkpoint", "run"}).status, 0);
  const Outcome on = train({"--steps", "1", "--resume", "run", "--json"});
  ASSERT_EQ(on.status, 0) << on.err;
  ASSERT_EQ(compile({"--optimizer", "sgd,lr=0"}).status, 0);
  const auto first = [&](const std::string &weights) {
    const Outcome outcome =
        train({"--batch", "16", "--steps", "1", "--weights", weights, "--json"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return losses(parseJson(outcome, "train")).at(0);
  };
  const double loss = first("run");
  EXPECT_EQ(first("run/model.safetensors"), loss);
  const Outcome fresh = train({"--steps", "1", "--json"});
  EXPECT_LT(loss, losses(parseJson(fresh, "train"))[0]);
  expectError(train({"--weights", "run/optimizer.safetensors"}), 2,
              {"--weights", "has no 'layers.0.bias'", "of the compiled module's state_dict"});
  expectError(train({"--weights", "run", "--resume", "run"}), 2, {"--weights", "--resume"});
  expectError(train({"--resume", "run"}), 2, {"load its weights alone with --weights"});
  const auto evaluate = [&](const std::vector<std::string> &more) {
    std::vector<std::string> arguments = {"run",      "mlp.cgplan", "--entry", "evaluate",
                                          "--input",  "x=random:1", "--input", "y=random:1",
                                          "--output", "loss.npy"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = cgc(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return readFile(folder / "loss.npy");
  };
  EXPECT_NE(evaluate({}), evaluate({"--checkpoint", "run"}));
  EXPECT_EQ(evaluate({"--checkpoint", "run"}), evaluate({"--checkpoint", "run/model.safetensors"}));
  makePlan();
  expectError(cgc({"run", "plan.cgplan", "--entry", "forward", "--checkpoint", "run", "--input",
                   "image=random:0", "--input", "text=random:0"}),
              2, {"--checkpoint", "cgc compile --train"});
}

/// A process that ends in the middle of a checkpoint leaves the one before.
TEST_F(Train, AnEndWithoutWarningLeavesAWholeCheckpoint) {
  makeStep();
  for (int i = 0; i < 5; ++i) {
    const Outcome outcome = train({"--steps", "1000000", "--checkpoint-every", "1", "--log-every",
                                   "1", "--checkpoint", "run"},
                                  {.signal = SIGKILL, .killOnPhase = "step 3,"});
    EXPECT_NE(outcome.status, 0);
    const Outcome next = train({"--steps", "1", "--resume", "run", "--json"});
    ASSERT_EQ(next.status, 0) << next.err;
    EXPECT_GT(parseJson(next, "train")["first_step"], 1);
  }
  ASSERT_EQ(train({"--steps", "1", "--checkpoint", "run"}).status, 0);
  for (const fs::directory_entry &entry : fs::directory_iterator(folder))
    EXPECT_FALSE(entry.path().filename().string().starts_with("run.tmp."))
        << entry << " of a process that has ended";
}

TEST_F(Train, RecomputesActivationsOnRequest) {
  // Less memory and the same steps: Recomputation.ChangesNothingButMemory.
  for (const std::string level : {"cheap", "blocks"}) {
    const Outcome outcome = compile({"--recompute", level});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
  expectError(compile({"--recompute", "most"}), 2, {"--recompute", "none", "cheap", "blocks"});
}

/// A contrastive loss compares all pairs of the batch, and one micro-batch's activations are in
/// memory at a time, on a GPU too.
TEST_F(Train, GradCacheMakesTheSameStepWithLessMemory) {
  const auto compile = [&](const std::string &plan, const std::string &target,
                           std::vector<std::string> more) {
    std::vector<std::string> arguments = {"compile",     trainingModels() / "shapes.pt",
                                          "-o",          plan,
                                          "--train",     "forward",
                                          "--target",    target,
                                          "--input",     "image=f32[64,3,32,32]",
                                          "--input",     "text=i64[64,8]",
                                          "--optimizer", "adamw,lr=0.001"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = cgc(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  };
  const auto entries = [&](const std::string &plan) {
    return parseJson(cgc({"inspect", plan, "--json"}), "plan")["entries"];
  };
  const auto train = [&](const std::string &plan, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"train",
                                          plan,
                                          "--data",
                                          "image=" + (trainingModels() / "image.npy").string(),
                                          "text=" + (trainingModels() / "text.npy").string(),
                                          "--log-every",
                                          "1",
                                          "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = cgc(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return losses(parseJson(outcome, "train"));
  };
  compile("whole.cgplan", "cpu", {});
  compile("parts.cgplan", "cpu", {"--grad-cache", "4"});
  EXPECT_LT(entries("parts.cgplan")[0]["buckets"][0]["arena_bytes"].get<double>(),
            entries("whole.cgplan")[0]["buckets"][0]["arena_bytes"].get<double>() / 2);
  const std::vector<double> expected = train("whole.cgplan", {"--steps", "3"});
  std::vector<double> got = train("parts.cgplan", {"--steps", "2", "--checkpoint", "run"});
  const std::vector<double> whole = train("parts.cgplan", {"--steps", "3"});
  const std::vector<double> rest = train("parts.cgplan", {"--steps", "1", "--resume", "run"});
  got.insert(got.end(), rest.begin(), rest.end());
  EXPECT_EQ(got, whole);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 1e-4) << i;

  compile("gpu.cgplan", "cuda", {"--grad-cache", "4"});
  const auto gpu = entries("gpu.cgplan");
  EXPECT_EQ(gpu[0]["buckets"][0]["branches"].size(), 0u) << "micro-batches run at the same time";
  EXPECT_EQ(gpu[1]["buckets"][0]["branches"].size(), 2u);
}

TEST_F(Train, RefusesWhatGradCacheCannotSplit) {
  const auto compile = [&](const std::vector<std::string> &more) {
    std::vector<std::string> arguments = {"compile",  trainingModels() / "mlp.pt",
                                          "-o",       "mlp.cgplan",
                                          "--target", "cpu",
                                          "--input",  "x=f32[16,32]",
                                          "--input",  "y=i64[16]"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cgc(arguments);
  };
  for (const std::string count : {"1", "0", "-2", "many"})
    expectError(compile({"--train", "forward", "--grad-cache", count}), 2, {"--grad-cache", count});
  expectError(compile({"--grad-cache", "2"}), 2, {"--grad-cache requires --train"});
  expectError(compile({"--train", "forward", "--grad-cache", "2", "--accumulate"}), 2,
              {"--accumulate excludes --grad-cache"});
  expectError(compile({"--train", "forward", "--grad-cache", "5"}), 2,
              {"cannot compile forward for x=f32[16,32]",
               "a batch of 16 is not divisible into 5 micro-batches"});
  expectError(compile({"--train", "forward", "--grad-cache", "4", "--batch", "8,6"}), 2,
              {"cannot compile forward for x=f32[6,32]", "a batch of 6 is not divisible into 4"});
  EXPECT_EQ(compile({"--train", "forward", "--grad-cache", "4", "--batch", "8,16"}).status, 0);
}

/// The losses of LibTorch's optimizer, with groups, clipping, a schedule and limits.
TEST_F(Train, LibTorchHasTheSameLosses) {
  const std::vector<std::string> optimizer = {
      "--optimizer", "adamw,lr=0.001,beta2=0.98,weight_decay=0.2",
      "--groups",    "@vectors:weight_decay=0:lr_scale=0.5",
      "--clip-norm", "0.5",
      "--schedule",  "cosine,steps=8,warmup=2",
      "--clamp",     "logit_scale=0:2.66"};
  const std::string model = trainingModels() / "shapes.pt";
  std::vector<std::string> compile = {
      "compile",  model, "-o",      "shapes.cgplan",         "--train", "forward",
      "--target", "cpu", "--input", "image=f32[64,3,32,32]", "--input", "text=i64[64,8]"};
  compile.insert(compile.end(), optimizer.begin(), optimizer.end());
  const Outcome compiled = cgc(compile);
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  std::vector<std::string> arguments = {"train",
                                        "shapes.cgplan",
                                        "--data",
                                        "image=" + (trainingModels() / "image.npy").string(),
                                        "text=" + (trainingModels() / "text.npy").string(),
                                        "--steps",
                                        "10",
                                        "--log-every",
                                        "1",
                                        "--json",
                                        "--against",
                                        model};
  const Outcome trained = cgc(arguments);
  ASSERT_EQ(trained.status, 0) << trained.err;
  const auto json = parseJson(trained, "train");
  EXPECT_LT(json["against"]["largest_relative_difference"], 1e-5);
  EXPECT_GT(json["against"]["libtorch_milliseconds_per_step"], 0);
  EXPECT_EQ(json["against"]["notes"].size(), 0u);
  ASSERT_EQ(json["losses"].size(), 10u);
  for (const auto &point : json["losses"])
    EXPECT_NEAR(point["loss"], point["libtorch_loss"], 1e-4);
  // What the plan says may be repeated.
  arguments.insert(arguments.end(), optimizer.begin(), optimizer.end());
  EXPECT_EQ(cgc(arguments).status, 0);
  EXPECT_TRUE(json["memory"][2]["libtorch_bytes"].is_null());
  EXPECT_GT(json["memory"][4]["libtorch_bytes"], 0);
}

TEST_F(Train, RefusesToCompareWithAnotherTraining) {
  makeStep();
  const std::string mlp = trainingModels() / "mlp.pt", clip = trainingModels() / "shapes.pt";
  expectError(train({"--against", clip}), 2,
              {"shapes.pt", "the plan has a state 'layers.0.bias', and the model does not"});
  const auto refuses = [&](const std::string &named, std::vector<std::string> options) {
    options.insert(options.begin(), {"--against", mlp});
    expectError(train(options), 2,
                {"--against: " + named +
                 " is not as in the plan, which was compiled with --train "
                 "forward --optimizer adamw,lr=0.01"});
  };
  refuses("--optimizer", {"--optimizer", "sgd"});
  refuses("lr of --optimizer", {"--optimizer", "adamw,lr=0.1"});
  refuses("beta2 of --optimizer", {"--optimizer", "adamw,beta2=0.5"});
  refuses("--groups", {"--groups", "@vectors:weight_decay=0"});
  refuses("--clip-norm", {"--clip-norm", "1"});
  refuses("step_size of --schedule", {"--schedule", "step,step_size=3"});
  refuses("--clamp", {"--clamp", "a=0:1"});
  refuses("--train", {"--train", "step"});
  refuses("--loss", {"--loss", "1"});
  refuses("--autocast", {"--autocast", "bf16"});
  expectError(train({"--against", mlp, "--optimizer", "adamw,lrr=1"}), 2, {"lrr"});
  makeStep({"--autocast", "fp16"});
  expectError(train({"--against", mlp}), 2,
              {"--against", "compiled with --autocast fp16", "--autocast bf16"});
}

/// A small CLIP model learns 64 pairs of shapes and names, and open_clip loads its checkpoint.
TEST_F(Train, OpenClipLoadsTheCheckpoint) {
  const Outcome compiled =
      cgc({"compile", trainingModels() / "shapes.pt", "-o", "shapes.cgplan", "--train", "forward",
           "--target", "cpu", "--input", "image=f32[64,3,32,32]", "--input", "text=i64[64,8]",
           "--optimizer", "adamw,lr=0.001"});
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const Outcome trained =
      cgc({"train", "shapes.cgplan", "--data", "image=" + (trainingModels() / "image.npy").string(),
           "text=" + (trainingModels() / "text.npy").string(), "--steps", "250", "--checkpoint",
           "run", "--json"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  const double loss = parseJson(trained, "train")["loss"];
  const Outcome loaded =
      python({"-c",
              R"(
import sys, numpy, open_clip, torch
folder, config = sys.argv[1:]
open_clip.add_model_config(config)
model = open_clip.create_model("shapes", pretrained="run/model.safetensors").eval()
with torch.no_grad():
    image, text, _ = model(*(torch.from_numpy(numpy.load(f"{folder}/{name}.npy")) for name in ("image", "text")))
print((image @ text.T).argmax(1).eq(torch.arange(64)).float().mean().item())
)",
              trainingModels(), test::sourceDir() / "examples/training/shapes.json"});
  ASSERT_EQ(loaded.status, 0) << loaded.err;
  EXPECT_LT(loss, 0.5);
  EXPECT_EQ(loaded.out, "1.0\n");
}

} // namespace
} // namespace cgc::e2e

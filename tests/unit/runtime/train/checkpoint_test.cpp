// Checkpoints: what is in them, resumption with equal bits, and every way in which they can be
// wrong.
#include "runtime/train/safetensors.h"
#include "runtime/train/trainer_impl.h"
#include "tests/unit/runtime/train/trained_plan.h"

#include <cmath>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(TrainedPlan, ResumedStepsAreBitEqual) {
  const std::string path = folder_ / "run";
  Result<Trainer> whole = create(), first = create(), second = create();
  ASSERT_TRUE(whole.isOk() && first.isOk() && second.isOk());
  ASSERT_TRUE(whole->set("lr", 0.125).isOk());
  ASSERT_TRUE(first->set("lr", 0.125).isOk());
  const auto losses = train(*whole, 0, 9);
  ASSERT_TRUE(losses.isOk());

  ASSERT_TRUE(train(*first, 0, 4).isOk());
  const Status saved = first->save(path, {{"position", "4"}});
  ASSERT_TRUE(saved.isOk()) << saved.message();
  const auto info = second->load(path);
  ASSERT_TRUE(info.isOk()) << info.status().message();
  EXPECT_EQ(info->step, 4u);
  EXPECT_EQ(info->notes, (std::map<std::string, std::string>{{"position", "4"}}));
  EXPECT_EQ(second->stepNumber(), 4u);
  const auto rest = train(*second, 4, 9);
  ASSERT_TRUE(rest.isOk());
  EXPECT_EQ(*rest, std::vector<double>(losses->begin() + 4, losses->end()));
  for (const char *state : {"w", "seen", "w:exp_avg"})
    EXPECT_EQ(read(*second, state), read(*whole, state)) << state;
  EXPECT_EQ(readSteps(*second), 9);
  EXPECT_THAT(folder_.list(), ElementsAre("run")); // Nothing temporary is left.
}

TEST_F(TrainedPlan, TheFilesHaveTheNamesOfTheModel) {
  SamplePlan sample = trainingPlan(kTestDevice);
  sample.plan.states[0].name = "model.w";
  sample.plan.states[2].name = "model.w:exp_avg";
  Result<Trainer> trainer = create(planOf(sample), {.prefix = "model."});
  ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
  ASSERT_TRUE(trainer->save(folder_ / "run").isOk());
  const auto model = SafetensorsFile::open(folder_ / "run/model.safetensors");
  ASSERT_TRUE(model.isOk()) << model.status().message();
  ASSERT_EQ(model->tensors().size(), 2u);
  ASSERT_TRUE(model->find("w"));
  EXPECT_TRUE(std::ranges::equal(model->find("w")->bytes, floatBytes({1, 2, 3, 4})));
  EXPECT_TRUE(model->find("seen"));
  EXPECT_EQ(model->metadata().at("format"), "pt");
  const auto optimizer = SafetensorsFile::open(folder_ / "run/optimizer.safetensors");
  ASSERT_TRUE(optimizer.isOk()) << optimizer.status().message();
  EXPECT_EQ(optimizer->tensors().size(), 3u);
  for (const char *name : {"w.exp_avg", "optimizer.step", "optimizer.lr"})
    EXPECT_TRUE(optimizer->find(name)) << name;
  EXPECT_TRUE(trainer->load(folder_ / "run").isOk());
}

TEST_F(TrainedPlan, ACheckpointReplacesTheOneBefore) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  ASSERT_TRUE(train(*trainer, 0, 1).isOk());
  ASSERT_TRUE(trainer->save(folder_ / "run/").isOk());
  ASSERT_TRUE(train(*trainer, 1, 3).isOk());
  ASSERT_TRUE(trainer->save(folder_ / "run").isOk());
  EXPECT_THAT(folder_.list(), ElementsAre("run"));
  EXPECT_EQ(trainer->load(folder_ / "run")->step, 3u);
}

TEST_F(TrainedPlan, ACheckpointThatIsNotFiniteLeavesTheOneBefore) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  ASSERT_TRUE(step(*trainer, batch(0)).isOk());
  ASSERT_TRUE(trainer->save(folder_ / "run").isOk());
  for (const float bad : {NAN, INFINITY}) {
    ASSERT_TRUE(step(*trainer, {1, 1, bad, 1}).isOk());
    const Status status = trainer->save(folder_ / "run");
    EXPECT_EQ(status.code(), Code::Failed);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("after step 2, 'w' has a NaN or an infinity"),
                                        HasSubstr("lower the learning rate")));
    ASSERT_TRUE(trainer->load(folder_ / "run").isOk());
  }
  TrainedModel model;
  model.step(batch(0));
  expectStates(*trainer, model);
}

/// Where IDs are those of another container, a lock shows that a process is alive.
TEST_F(TrainedPlan, TemporaryFoldersOfEndedProcessesAreRemoved) {
  const pid_t ended = fork();
  if (ended == 0)
    _exit(0);
  ASSERT_EQ(waitpid(ended, nullptr, 0), ended);
  const auto make = [&](const std::string &name) {
    const std::string path = folder_ / name;
    std::filesystem::create_directory(path);
    writeFile(path + "/model.safetensors", "");
    writeFile(path + "/optimizer.safetensors.tmp." + std::to_string(ended) + ".0", "");
    return path;
  };
  const std::string id = std::to_string(ended), abandoned = make("run.tmp." + id),
                    alive = make("run.tmp." + std::to_string(getppid())),
                    noProcess = make("run.tmp." + id + "x"), other = make("run2.tmp." + id);
  const int lock = open(abandoned.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  ASSERT_TRUE(trainer->save(folder_ / "run").isOk());
  EXPECT_TRUE(std::filesystem::exists(abandoned)) << "it is locked";
  close(lock);
  ASSERT_TRUE(trainer->save(folder_ / "run").isOk());
  EXPECT_FALSE(std::filesystem::exists(abandoned));
  for (const std::string &kept : {alive, noProcess, other})
    EXPECT_TRUE(std::filesystem::exists(kept + "/model.safetensors")) << kept;
}

TEST_F(TrainedPlan, AFolderOfSomethingElseIsNotReplaced) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  std::filesystem::create_directory(folder_ / "home");
  writeFile(folder_ / "home/thesis.tex", "x");
  EXPECT_THAT(trainer->save(folder_ / "home").message(),
              AllOf(HasSubstr("is no checkpoint"), HasSubstr("thesis.tex")));
  EXPECT_EQ(trainer->save(folder_ / "home/thesis.tex").code(), Code::Usage);
  EXPECT_EQ(trainer->save(folder_ / "nowhere/run").code(), Code::Failed);
  EXPECT_EQ(trainer->save("").code(), Code::Usage);
  EXPECT_EQ(readFile(folder_ / "home/thesis.tex"), "x");
  EXPECT_THAT(folder_.list(), ElementsAre("home"));
}

TEST_F(TrainedPlan, ACheckpointBehindALinkIsReplacedThere) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  std::filesystem::create_directory(folder_ / "disk");
  std::filesystem::create_directory_symlink("disk", folder_ / "run");
  ASSERT_TRUE(trainer->save(folder_ / "run").isOk());
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "run"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "disk/model.safetensors"));
}

/// The sample with the average of w, which begins as w. Its step leaves it.
SamplePlan planWithAverage() {
  SamplePlan sample = trainingPlan(kTestDevice);
  sample.plan.states.push_back({"w:ema", StateRole::Average, DType::F32, {kTrained}, 0});
  return sample;
}

TEST_F(TrainedPlan, AveragesHaveAFileWithTheNamesOfTheModel) {
  Result<Trainer> trainer = create(planOf(planWithAverage()));
  ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
  ASSERT_TRUE(train(*trainer, 0, 2).isOk());
  ASSERT_TRUE(trainer->save(folder_ / "run").isOk());
  const auto averages = SafetensorsFile::open(folder_ / "run/average.safetensors");
  ASSERT_TRUE(averages.isOk()) << averages.status().message();
  ASSERT_EQ(averages->tensors().size(), 2u);
  ASSERT_TRUE(averages->find("w") && averages->find("seen"));
  EXPECT_TRUE(std::ranges::equal(averages->find("w")->bytes, floatBytes({1, 2, 3, 4})));
  EXPECT_TRUE(
      std::ranges::equal(averages->find("seen")->bytes, floatBytes(read(*trainer, "seen"))));
  EXPECT_EQ(SafetensorsFile::open(folder_ / "run/optimizer.safetensors")->tensors().size(), 3u);

  const std::vector<float> w = read(*trainer, "w");
  std::vector<float> other = {9, 8, 7, 6};
  ASSERT_TRUE(trainer->write("w:ema", floatView(other, kParameterSizes)).isOk());
  ASSERT_TRUE(trainer->load(folder_ / "run").isOk());
  EXPECT_EQ(read(*trainer, "w:ema"), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(read(*trainer, "w"), w);
  // The weights of another program are where the averages start.
  ASSERT_TRUE(trainer->loadModel(folder_ / "run/model.safetensors").isOk());
  EXPECT_EQ(read(*trainer, "w:ema"), w);
}

TEST_F(TrainedPlan, ACheckpointNeedsTheAveragesOfItsPlan) {
  Result<Trainer> plain = create(), averaging = create(planOf(planWithAverage()));
  ASSERT_TRUE(plain.isOk() && averaging.isOk());
  ASSERT_TRUE(averaging->save(folder_ / "run").isOk());
  EXPECT_THAT(plain->load(folder_ / "run").status().message(),
              AllOf(HasSubstr(folder_ / "run"),
                    HasSubstr("it has averages, and the plan keeps none"),
                    HasSubstr("use the plan that wrote it")));
  ASSERT_TRUE(plain->save(folder_ / "run").isOk()); // Replaces all three files by two.
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/average.safetensors"));
  EXPECT_THAT(averaging->load(folder_ / "run").status().message(), HasSubstr("it has no averages"));
}

TEST_F(TrainedPlan, FilesThatAreCutShortChangeNothing) {
  Result<Trainer> trainer = create(planOf(planWithAverage()));
  ASSERT_TRUE(trainer.isOk());
  ASSERT_TRUE(train(*trainer, 0, 2).isOk());
  ASSERT_TRUE(trainer->save(folder_ / "run").isOk());
  TrainedModel model;
  model.step(batch(0));
  model.step(batch(1));
  for (const char *file : {"model.safetensors", "optimizer.safetensors", "average.safetensors"}) {
    const std::string path = folder_ / "run" + "/" + file, all = readFile(path);
    for (size_t size = 0; size < all.size(); ++size) {
      writeFile(path, all.substr(0, size));
      const Status status = trainer->load(folder_ / "run").status();
      ASSERT_EQ(status.code(), Code::InvalidFile) << file << " of " << size << " bytes";
      ASSERT_THAT(status.message(), HasSubstr(file));
    }
    writeFile(path, all);
  }
  expectStates(*trainer, model);
  EXPECT_EQ(trainer->stepNumber(), 2u);
  EXPECT_TRUE(trainer->load(folder_ / "run").isOk());
}

TEST_F(TrainedPlan, CheckpointsOfOtherModelsAreRefused) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  EXPECT_THAT(trainer->load(folder_ / "run").status().message(), HasSubstr("does not exist"));
  const auto refusal = [&](auto change) {
    SamplePlan sample = trainingPlan(kTestDevice);
    change(sample.plan);
    Result<Trainer> other = create(planOf(sample));
    EXPECT_TRUE(other.isOk()) << other.status().message();
    EXPECT_TRUE(other->save(folder_ / "run").isOk());
    return trainer->load(folder_ / "run").status().message();
  };
  EXPECT_THAT(refusal([](PlanData &p) { p.states[0].name = "v"; }),
              AllOf(HasSubstr(folder_ / "run"), HasSubstr("it has no 'w'"),
                    HasSubstr("use the plan that wrote it")));
  EXPECT_THAT(refusal([](PlanData &p) {
                p.states.push_back({"more", StateRole::Optimizer, DType::F32, {2}});
              }),
              HasSubstr("it has 'more', which the plan does not have"));
  EXPECT_THAT(refusal([](PlanData &p) { p.states[1].sizes = {5}; }),
              HasSubstr("'seen' is f32[5] instead of f32[4]"));
  EXPECT_THAT(refusal([](PlanData &p) { p.states[3].role = StateRole::Buffer; }),
              HasSubstr("it has 'optimizer:step', which the plan does not have"));
  // Another plan with the same states.
  EXPECT_THAT(refusal([](PlanData &p) { p.entries.pop_back(); }),
              HasSubstr("another plan with the same states"));
  EXPECT_TRUE(trainer->load(folder_ / "run", {.anyPlan = true}).isOk());
  // Its weights' first values, producer, lines and what it says of the step do not make it another
  // plan.
  EXPECT_EQ(refusal([](PlanData &p) { p.producer = "cgc 9"; }), "");
  EXPECT_EQ(refusal([](PlanData &p) { p.training = TrainingStep{"forward"}; }), "");
}

TEST_F(TrainedPlan, CheckpointsOfOtherVersionsAreRefused) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  ASSERT_TRUE(trainer->save(folder_ / "run").isOk());
  const std::string path = folder_ / "run/model.safetensors", version = R"("cgc.checkpoint":"1")";
  std::string file = readFile(path);
  ASSERT_NE(file.find(version), std::string::npos);
  file[file.find(version) + version.size() - 2] = '2';
  writeFile(path, file);
  const Status status = trainer->load(folder_ / "run").status();
  EXPECT_EQ(status.code(), Code::InvalidFile);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("version 2, and this cgc reads version 1"), HasSubstr("go on with")));
}

TEST_F(TrainedPlan, NumbersOfStepsAreChecked) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  ASSERT_TRUE(trainer->save(folder_ / "run").isOk());
  const auto load = [&](const std::string &steps) {
    for (const char *file : {"model.safetensors", "optimizer.safetensors"}) {
      const std::string path = folder_ / "run" + "/" + file;
      const auto read = SafetensorsFile::open(path);
      EXPECT_TRUE(read.isOk()) << read.status().message();
      SafetensorsMetadata metadata = read->metadata();
      metadata["cgc.step"] = steps;
      std::vector<SafetensorsEntry> entries;
      for (const SafetensorsTensor &tensor : read->tensors())
        entries.push_back({tensor.name, tensor.dtype, tensor.sizes});
      std::string text = *safetensorsHeader(entries, metadata);
      for (const size_t i : safetensorsOrder(entries)) {
        const auto bytes = read->tensors()[i].bytes;
        text.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
      }
      writeFile(path, text);
    }
    return trainer->load(folder_ / "run");
  };
  for (const char *steps : {"-1", "18446744073709551615", "9223372036854775808", "", "7 ", "x"}) {
    const Status refused = load(steps).status();
    EXPECT_EQ(refused.code(), Code::InvalidFile);
    EXPECT_THAT(refused.message(),
                AllOf(HasSubstr(folder_ / "run"),
                      HasSubstr("its cgc.step is '" + std::string(steps) + "'"),
                      HasSubstr("no number of steps"), HasSubstr("use another checkpoint")));
  }
  EXPECT_EQ(load("9223372036854775807")->step, uint64_t(INT64_MAX));
}

/// A state's average is found in one pass over the names, and by the role as well.
TEST(Averages, AreThoseOfTheirParameters) {
  std::vector<State> states;
  constexpr size_t kCount = 1000;
  for (size_t i = 0; i < kCount; ++i)
    states.push_back({"w" + std::to_string(i), StateRole::Parameter, DType::F32, {}});
  for (size_t i = 0; i < kCount; i += 2)
    states.push_back({"w" + std::to_string(i) + ":ema", StateRole::Average, DType::F32, {}});
  states.push_back({"w1:ema", StateRole::Optimizer, DType::F32, {}});
  states.push_back({"v:ema", StateRole::Average, DType::F32, {}});
  const std::vector<size_t> averages = averagesOf(states);
  ASSERT_EQ(averages.size(), states.size());
  for (size_t i = 0; i < states.size(); ++i)
    EXPECT_EQ(averages[i], i < kCount && i % 2 == 0 ? kCount + i / 2 : i) << states[i].name;
}

TEST_F(TrainedPlan, FilesOfTwoCheckpointsAreRefused) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  ASSERT_TRUE(trainer->save(folder_ / "a").isOk());
  ASSERT_TRUE(train(*trainer, 0, 1).isOk());
  ASSERT_TRUE(trainer->save(folder_ / "b").isOk());
  std::filesystem::copy_file(folder_ / "a/model.safetensors", folder_ / "b/model.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(trainer->load(folder_ / "b").status().message(), HasSubstr("of two checkpoints"));
}

TEST_F(TrainedPlan, WeightsOfOtherProgramsAreLoaded) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  ASSERT_TRUE(train(*trainer, 0, 2).isOk());
  const auto write = [&](DType dtype, std::string_view w) {
    std::vector<SafetensorsEntry> entries = {
        {"w", dtype, {4}}, {"seen", DType::F32, {4}}, {"unused", DType::U8, {1}}};
    // Larger elements come first, then names.
    const std::string header = *safetensorsHeader(entries, {});
    const std::string seen(16, '\0');
    writeFile(folder_ / "weights", header + seen + std::string(w) + "u");
  };
  const std::string halves("\x00\x3c\x00\xc0\x01\x00\x00\x7c", 8); // 1, -2, 2^-24, infinity.
  write(DType::F16, halves);
  const auto unused = trainer->loadModel(folder_ / "weights");
  ASSERT_TRUE(unused.isOk()) << unused.status().message();
  EXPECT_THAT(*unused, ElementsAre("unused"));
  EXPECT_EQ(read(*trainer, "w"), (std::vector<float>{1, -2, 0x1p-24F, INFINITY}));
  EXPECT_EQ(read(*trainer, "seen"), std::vector<float>(4));
  EXPECT_EQ(readSteps(*trainer), 2); // The optimizer goes on.

  write(DType::BF16, std::string("\x80\x3f\x00\xc0\x00\x00\x80\x7f", 8));
  ASSERT_TRUE(trainer->loadModel(folder_ / "weights").isOk());
  EXPECT_EQ(read(*trainer, "w"), (std::vector<float>{1, -2, 0, INFINITY}));
  write(DType::F32, std::string(16, '\0'));
  ASSERT_TRUE(trainer->loadModel(folder_ / "weights").isOk());
  EXPECT_EQ(read(*trainer, "w"), std::vector<float>(4));
  write(DType::I32, std::string(16, '\0'));
  EXPECT_THAT(trainer->loadModel(folder_ / "weights").status().message(),
              HasSubstr("'w' is i32[4] instead of f32[4]"));
  // A checkpoint's own file.
  ASSERT_TRUE(trainer->save(folder_ / "run").isOk());
  EXPECT_TRUE(trainer->loadModel(folder_ / "run/model.safetensors").isOk());
  EXPECT_THAT(trainer->loadModel(folder_ / "run/optimizer.safetensors").status().message(),
              HasSubstr("has no 'w'"));
}

} // namespace
} // namespace cgc::test

// 16-bit copies of parameters: a step under autocast that reads copies equals one that casts, bit
// by bit, from the start, after a checkpoint and after new weights.
#include "driver/compile.h"
#include "frontend/frontend.h"
#include "runtime/train/trainer.h"
#include "tests/numerics/optimizer_of.h"
#include "tests/numerics/test_models.h"
#include "tests/paths.h"
#include "tests/temp_folder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace cgc {
namespace {

struct CopiesCase {
  std::string name, model;
  std::vector<driver::InputSpec> inputs;
  std::string optimizer;
  DType autocast;
  friend std::ostream &operator<<(std::ostream &os, const CopiesCase &c) { return os << c.name; }
};

class ParameterCopies : public testing::TestWithParam<CopiesCase> {
protected:
  /// Compiles the step of the model, with or without copies.
  static std::shared_ptr<const Plan> planOf(const std::string &copies) {
    const CopiesCase &c = GetParam();
    auto root =
        frontend::importTorchScript(test::trainingModel(c.model), frontend::ImportFor::Training);
    EXPECT_TRUE(root.isOk()) << root.status().message();
    driver::CompileOptions options;
    options.inputs = c.inputs;
    options.target = DeviceKind::Cpu;
    options.libraryFolder = kLibraries;
    options.train = driver::TrainOptions{
        "forward", 0, test::optimizerOf(c.optimizer + ",copies=" + copies), c.autocast, ""};
    ir::Diagnostics diagnostics;
    auto compiled = driver::compile(**root, options, diagnostics);
    EXPECT_TRUE(compiled.isOk()) << compiled.status().message();
    std::vector<std::vector<std::byte>> weights;
    for (const auto &weight : compiled->weights)
      weights.emplace_back(weight->bytes().begin(), weight->bytes().end());
    auto plan = Plan::fromMemory(std::move(compiled->plan), std::move(weights));
    EXPECT_TRUE(plan.isOk()) << plan.status().message();
    return std::make_shared<const Plan>(*std::move(plan));
  }
  static Trainer trainerOf(std::shared_ptr<const Plan> plan) {
    TrainerOptions options;
    options.engine.providerPath = kLibraries;
    auto trainer = Trainer::create(std::move(plan), options);
    EXPECT_TRUE(trainer.isOk()) << trainer.status().message();
    return *std::move(trainer);
  }

  /// Makes steps `begin` to `end` - 1 and returns their losses.
  static std::vector<double> train(Trainer &trainer, int begin, int end) {
    for (int i = begin; i < end; ++i) {
      at::manual_seed(i);
      std::vector<at::Tensor> batch;
      std::vector<TensorView> views;
      for (const driver::InputSpec &input : GetParam().inputs) {
        const bool isLabel = input.dtype == DType::I64;
        batch.push_back(isLabel ? at::randint(10, input.sizes, at::kLong) : at::randn(input.sizes));
        views.push_back({batch.back().data_ptr(), input.dtype, DeviceKind::Cpu, input.sizes, {}});
      }
      const Status status = trainer.step(views);
      EXPECT_TRUE(status.isOk()) << status.message();
    }
    std::vector<double> losses;
    for (const StepResult &result : *trainer.poll())
      losses.push_back(result.loss);
    return losses;
  }
  static std::vector<std::byte> read(Trainer &trainer, const State &state) {
    std::vector<std::byte> bytes(*tensorBytes(state.dtype, state.sizes));
    const Status status =
        trainer.read(state.name, {bytes.data(), state.dtype, DeviceKind::Cpu, state.sizes, {}});
    EXPECT_TRUE(status.isOk()) << status.message();
    return bytes;
  }
  /// All states of `casting` are equal in `copying`.
  static void expectEqualStates(Trainer &copying, Trainer &casting) {
    for (const State &state : casting.plan().data().states)
      EXPECT_EQ(read(copying, state), read(casting, state)) << state.name;
  }

  inline static const std::string kLibraries = test::buildDir() / "lib";
};

TEST_P(ParameterCopies, EqualCasts) {
  const auto copies = planOf("true"), casts = planOf("false");
  const auto count = [](const Plan &plan) {
    return std::ranges::count(plan.data().states, StateRole::Copy, &State::role);
  };
  ASSERT_GT(count(*copies), 0);
  ASSERT_EQ(count(*casts), 0);
  EXPECT_TRUE(copies->data().findEntry(kRefreshEntry));
  EXPECT_FALSE(casts->data().findEntry(kRefreshEntry));
  Trainer copying = trainerOf(copies), casting = trainerOf(casts);
  const std::vector<double> losses = train(casting, 0, 4);
  EXPECT_EQ(train(copying, 0, 4), losses);
  EXPECT_NE(losses[0], losses[1]) << "the step trains nothing";
  expectEqualStates(copying, casting);

  // A checkpoint has no copies.
  const test::TempFolder folder;
  ASSERT_TRUE(copying.save(folder / "run").isOk());
  const std::vector<double> rest = train(casting, 4, 7);
  Trainer loaded = trainerOf(copies), withoutCopies = trainerOf(casts);
  ASSERT_TRUE(loaded.load(folder / "run").isOk());
  EXPECT_EQ(train(loaded, 4, 7), rest);
  ASSERT_TRUE(withoutCopies.load(folder / "run", {.anyPlan = true}).isOk());
  EXPECT_EQ(train(withoutCopies, 4, 7), rest);

  // Weights of another file, and the first values again.
  ASSERT_TRUE(casting.reset().isOk() && loaded.reset().isOk());
  EXPECT_EQ(train(loaded, 0, 4), losses);
  ASSERT_TRUE(casting.loadModel(folder / "run/model.safetensors").isOk());
  ASSERT_TRUE(loaded.reset().isOk() && loaded.loadModel(folder / "run/model.safetensors").isOk());
  EXPECT_EQ(train(loaded, 0, 2), train(casting, 0, 2));
}

const std::vector<driver::InputSpec> kVectors = {{"x", DType::F32, {4, 16}},
                                                 {"label", DType::I64, {4}}};

INSTANTIATE_TEST_SUITE_P(
    Models, ParameterCopies,
    testing::Values(CopiesCase{"MlpMomentum", "train_mlp", kVectors,
                               "rule=sgd,lr=0.02,momentum=0.9", DType::BF16},
                    CopiesCase{"MlpAdamW", "train_mlp", kVectors,
                               "rule=adamw,lr=0.001,groups=@vectors:weight_decay=0", DType::F16},
                    CopiesCase{
                        "Clip",
                        "train_clip",
                        {{"image", DType::F32, {4, 3, 32, 32}}, {"text", DType::I64, {4, 16}}},
                        "rule=adamw,lr=0.001,clip-norm=1.0,"
                        "clamp=clip.logit_scale=0:4.6052",
                        DType::BF16}),
    [](const auto &info) { return info.param.name; });

} // namespace
} // namespace cgc

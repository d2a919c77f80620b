// Tests of ViT-B-32 with random weights (ctest label `families`): the time and memory bounds of
// compiling it, and its training beside LibTorch. families_test.cpp compares its inference.
#include "tool.h"

#include <random>

namespace cgc::e2e {
namespace {

class RealModel : public ToolTest {};

TEST_F(RealModel, CompilesAndRunsWithinItsBounds) {
  const fs::path &model = realModel();
  const auto modelBytes = fs::file_size(model);
  const Outcome compiled =
      cgc({"compile", model, "-o", "plan.cgplan", "--input", "image=f32[1,3,224,224]", "--input",
           "text=i64[1,77]", "--batch", "1,3,4", "--target", "cpu", "--json"});
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_LE(compiled.peakKilobytes * 1024.0, 3.0 * static_cast<double>(modelBytes));
  const auto json = parseJson(compiled, "compile");
  EXPECT_LE(json["bytes"].get<double>(), 1.01 * json["weight_bytes"].get<double>() + 1e6);

  for (const char *input : {"image", "text"}) {
    const Outcome run = cgc({"run", "plan.cgplan", "--entry", std::string("encode_") + input,
                             "--input", std::string(input) + "=random:0", "--output", "y.npy"});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(npyFloats(folder / "y.npy").size(), 512u);
  }
  fs::remove(folder / "plan.cgplan");
}

TEST_F(RealModel, InterruptedWhileWritingLeavesNothing) {
  // Large enough that the signal comes while the temporary file is there.
  const Outcome outcome =
      cgc({"compile", realModel(), "-o", "plan.cgplan", "--input", "text=i64[1,77]", "--input",
           "image=f32[1,3,224,224]", "--target", "cpu"},
          {.killOnPhase = "] write", .killOnTemporary = true});
  EXPECT_EQ(outcome.status, 128 + 2) << outcome.err;
  EXPECT_TRUE(files().empty());
}

/// 20 steps of AdamW on batches of 8, from the same start and with the same data as LibTorch.
TEST_F(RealModel, TrainsAsLibTorch) {
  constexpr int64_t kBatch = 8, kSteps = 20, kSamples = kBatch * kSteps, kContext = 77,
                    kEndOfText = 49407;
  std::mt19937 random(0);
  std::normal_distribution<float> normal;
  std::vector<float> images(kSamples * 3 * 224 * 224);
  std::ranges::generate(images, [&] { return normal(random); });
  writeNpy(folder / "image.npy", "<f4", {kSamples, 3, 224, 224}, images);
  std::vector<int64_t> texts(kSamples * kContext);
  for (size_t i = 0; i < texts.size(); ++i)
    texts[i] = i % kContext == kContext - 1 ? kEndOfText : int64_t(random() % kEndOfText);
  writeNpy(folder / "text.npy", "<i8", {kSamples, kContext}, texts);

  const std::vector<std::string> optimizer = {
      "--optimizer", "adamw,lr=0.0001,beta2=0.98,eps=1e-6,weight_decay=0.2",
      "--groups",    "@vectors:weight_decay=0",
      "--clamp",     "logit_scale=0:4.6052"};
  const std::string model = realTrainingStep();
  std::vector<std::string> compile = {
      "compile", model,           "-o",  "step.cgplan", "--train",
      "forward", "--target",      "cpu", "--input",     "image=f32[8,3,224,224]",
      "--input", "text=i64[8,77]"};
  compile.insert(compile.end(), optimizer.begin(), optimizer.end());
  const Outcome compiled = cgc(compile);
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  std::vector<std::string> train = {"train",
                                    "step.cgplan",
                                    "--data",
                                    "image=image.npy",
                                    "text=text.npy",
                                    "--steps",
                                    std::to_string(kSteps),
                                    "--log-every",
                                    "1",
                                    "--json",
                                    "--against",
                                    model};
  train.insert(train.end(), optimizer.begin(), optimizer.end());
  const Outcome trained = cgc(train);
  ASSERT_EQ(trained.status, 0) << trained.err;
  const auto losses = parseJson(trained, "train")["losses"];
  ASSERT_EQ(losses.size(), size_t(kSteps));
  for (const auto &point : losses) {
    const double expected = point["libtorch_loss"];
    EXPECT_NEAR(point["loss"], expected, (point["step"] <= 10 ? 1e-5 : 1e-3) * expected)
        << "in step " << point["step"];
  }
}

} // namespace
} // namespace cgc::e2e

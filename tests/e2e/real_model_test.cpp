// Tests of models in real size (ctest label `families`): the time and memory bounds of compiling
// ViT-B-32 with random weights, its training beside LibTorch, and weights beyond 2^31 bytes.
// families_test.cpp compares the results of inference.
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

/// The temporary file goes. A signal that comes between the last write and the rename may find the
/// plan in place, which then is whole.
TEST_F(RealModel, InterruptedWhileWritingLeavesNoPart) {
  // Large enough that the signal comes while the temporary file is there.
  const Outcome outcome =
      cgc({"compile", realModel(), "-o", "plan.cgplan", "--input", "text=i64[1,77]", "--input",
           "image=f32[1,3,224,224]", "--target", "cpu"},
          {.killOnPhase = "] write", .killOnTemporary = true});
  EXPECT_EQ(outcome.status, 128 + 2) << outcome.err;
  for (const std::string &file : files()) {
    EXPECT_EQ(file, "plan.cgplan");
    EXPECT_EQ(cgc({"info", file}).status, 0);
  }
}

/// Row r of the table has (r % 509 + column) / 1024 in each column, and the linear that follows it
/// in the file sums the columns.
TEST_F(RealModel, WeightsBeyond2To31BytesAreWhole) {
  constexpr int64_t kRows = 1'100'000, kColumns = 512;
  static_assert(kRows * kColumns * 4 > int64_t(1) << 31);
  const Outcome made = runProgram({test::sourceDir() / ".venv/bin/python", "-c", R"(
import sys, torch
rows, columns = map(int, sys.argv[1:])
table = torch.nn.Embedding.from_pretrained((torch.arange(rows)[:, None] % 509 + torch.arange(columns)) / 1024)
linear = torch.nn.Linear(columns, 2)
with torch.no_grad():
    linear.weight.copy_(torch.tensor([[1.0], [-1.0]]))
    linear.bias.copy_(torch.tensor([0.0, 1.0]))
torch.jit.trace(torch.nn.Sequential(table, linear), torch.tensor([0])).save("large.pt")
)",
                                   std::to_string(kRows), std::to_string(kColumns)},
                                  folder);
  ASSERT_EQ(made.status, 0) << made.err;
  const Outcome compiled = cgc(
      {"compile", "large.pt", "-o", "large.cgplan", "--input", "input=i64[3]", "--target", "cpu"});
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  fs::remove(folder / "large.pt");
  const std::vector<int64_t> ids = {1, kRows / 2, kRows - 1};
  writeNpy(folder / "ids.npy", "<i8", {3}, ids);
  const Outcome run =
      cgc({"run", "large.cgplan", "--input", "input=@ids.npy", "--output", "y.npy"});
  ASSERT_EQ(run.status, 0) << run.err;
  fs::remove(folder / "large.cgplan");
  const auto y = npyFloats(folder / "y.npy");
  ASSERT_EQ(y.size(), 2 * ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t units = kColumns * (ids[i] % 509) + kColumns * (kColumns - 1) / 2;
    const float sum = float(units) / 1024; // Exact.
    EXPECT_EQ(y[2 * i], sum) << "row " << ids[i];
    EXPECT_EQ(y[2 * i + 1], 1 - sum) << "row " << ids[i];
  }
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

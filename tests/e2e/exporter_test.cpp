// Tests of scripts/export_openclip.py: random weights, checkpoints, and errors.
#include "script.h"
#include "tests/paths.h"

namespace cgc::e2e {
namespace {

class Exporter : public ScriptTest {
protected:
  Outcome exportModel(std::vector<std::string> arguments) {
    return script("export_openclip", std::move(arguments));
  }
  Outcome exportTiny(std::vector<std::string> more) {
    more.insert(more.begin(), {"--config", kTiny, "--out", "model.pt"});
    return exportModel(more);
  }
  /// Saves the weights of seed 0 to a file of the test's folder, after a Python statement has
  /// changed them; `w` holds the weights.
  void saveWeights(const std::string &statement) {
    const Outcome saved = python({"-c",
                                  "import sys, torch; m = torch.jit.load(sys.argv[1])\n"
                                  "w = {n: p.detach().clone() for n, p in m.named_parameters()}\n" +
                                      statement,
                                  models() / "tiny_fp32.pt"});
    ASSERT_EQ(saved.status, 0) << saved.err;
  }

  const fs::path kTiny = kSource / "tests/data/tiny.json";
};

TEST_F(Exporter, EveryParameterDiffers) {
  const Outcome outcome = python({"-c",
                                  R"(
import sys, torch
seen = {}
for name, value in torch.jit.load(sys.argv[1]).named_parameters():
    if value.numel() > 1 and torch.all(value == value.flatten()[0]):
        sys.exit(f"{name} is constant")
    same = seen.setdefault(value.detach().numpy().tobytes(), name)
    if same != name:
        sys.exit(f"{name} equals {same}")
print(len(seen) > 30)
)",
                                  models() / "tiny_fp32.pt"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "True\n");
}

TEST_F(Exporter, ACheckpointHoldsTheWeights) {
  // A model with another seed loads the weights of the model with seed 0.
  saveWeights("torch.save(w, 'weights.pt')");
  const Outcome outcome = exportTiny({"--checkpoint", "weights.pt", "--seed", "1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("weights of weights.pt\n"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("RANDOM"), std::string::npos) << outcome.out;
  const Outcome same = python({"-c",
                               R"(
import sys, torch
a, b = (torch.jit.load(path) for path in sys.argv[1:])
text = torch.arange(16).reshape(1, 16)
image = torch.linspace(-1, 1, 3 * 32 * 32).reshape(1, 3, 32, 32)
print(torch.equal(a.encode_text(text), b.encode_text(text)),
      torch.equal(a.encode_image(image), b.encode_image(image)))
)",
                               models() / "tiny_fp32.pt", "model.pt"});
  EXPECT_EQ(same.out, "True True\n") << same.err;
}

TEST_F(Exporter, NeverReplacesWhatItReads) {
  writeFile(folder / "same.pt", "trained for weeks");
  fs::copy(kTiny, folder / "tiny.json");
  const std::string config = readFile(folder / "tiny.json");
  fs::create_symlink("same.pt", folder / "link.pt");
  fs::create_hard_link(folder / "same.pt", folder / "hard.pt");
  const std::vector<std::string> before = files();
  for (const auto &[checkpoint, out] : {std::pair("same.pt", "same.pt"),
                                        {"same.pt", "./same.pt"},
                                        {"same.pt", "link.pt"},
                                        {"link.pt", "same.pt"},
                                        {"hard.pt", "same.pt"}})
    expectErrorLine(
        exportModel({"--config", "tiny.json", "--checkpoint", checkpoint, "--out", out}), 2,
        {std::string("--out ") + out, checkpoint, "would be lost", "give another name"});
  expectErrorLine(exportModel({"--config", "tiny.json", "--out", "tiny.json"}), 2,
                  {"--out tiny.json", "would be lost"});
  EXPECT_EQ(readFile(folder / "same.pt"), "trained for weeks");
  EXPECT_EQ(readFile(folder / "tiny.json"), config);
  EXPECT_TRUE(fs::is_symlink(folder / "link.pt"));
  EXPECT_EQ(files(), before);
}

TEST_F(Exporter, RefusesEmptyNames) {
  expectErrorLine(exportModel({"--config", kTiny, "--out", ""}), 2, {"--out ''", "give a file"});
  expectErrorLine(exportModel({"--config", "", "--out", "x.pt"}), 2,
                  {"--config ''", "give a file"});
  expectErrorLine(exportTiny({"--checkpoint", ""}), 2, {"--checkpoint ''", "give a file"});
  EXPECT_TRUE(files().empty());
}

TEST_F(Exporter, RefusesACheckpointThatIsNone) {
  expectErrorLine(exportTiny({"--checkpoint", "missing.pt"}), 1, {"missing.pt: no such file"});
  writeFile(folder / "text.pt", "no weights\n");
  writeFile(folder / "empty.pt", "");
  std::string noise(5000, '\0');
  for (size_t i = 0; i < noise.size(); ++i)
    noise[i] = static_cast<char>(i * i * 31 + 7);
  writeFile(folder / "noise.pt", noise);
  writeFile(folder / "pointer.pt", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  writeFile(folder / "plan.pt", std::string("CGCPLAN\0", 8) + noise);
  writeFile(folder / "noise.safetensors", noise);
  const std::string whole = readFile(models() / "pickle.pt");
  writeFile(folder / "cut.pt", whole.substr(0, whole.size() / 2));
  const Outcome made = python({"-c",
                               R"(
import torch
for kind, zipped in ("", True), ("old_", False):
    torch.save(torch.ones(3), kind + "tensor.pt", _use_new_zipfile_serialization=zipped)
    torch.save(torch.nn.Linear(2, 2), kind + "module.pt", _use_new_zipfile_serialization=zipped)
torch.save([torch.ones(3)], "list.pt")
)"});
  ASSERT_EQ(made.status, 0) << made.err;
  const std::string state = "torch.save(model.state_dict(), 'weights.pt')";
  const std::pair<std::string, std::vector<std::string>> files[] = {
      {"text.pt", {"text, not a checkpoint"}},
      {"empty.pt", {"the file is empty", "copy it again"}},
      {"noise.pt", {"no known kind, not a checkpoint"}},
      {"pointer.pt", {"Git LFS", "git lfs pull"}},
      {"plan.pt", {"a cgc plan, not a checkpoint"}},
      {"noise.safetensors", {"no safetensors file", "copy it again"}},
      {"cut.pt", {"not a checkpoint, or damaged or cut short", "copy it again"}},
      {"tensor.pt", {"one tensor", state}},
      {"old_tensor.pt", {"one tensor", state}},
      {"module.pt", {"pickled object of class torch.nn.modules.linear.Linear", state}},
      {"old_module.pt", {"pickled object of class torch.nn.modules.linear.Linear", state}},
      {"list.pt", {"a list or a value", state}}};
  for (const auto &[file, texts] : files) {
    const Outcome outcome = exportTiny({"--checkpoint", file});
    expectErrorLine(outcome, 1, texts);
    expectError(outcome, 1, {file});
    EXPECT_EQ(outcome.err.find("weights_only"), std::string::npos) << outcome.err;
  }
  EXPECT_FALSE(fs::exists(folder / "model.pt"));
}

TEST_F(Exporter, SaysHowToGetPretrainedWeights) {
  expectErrorLine(
      exportModel({"--model", "ViT-B-32", "--checkpoint", "laion2b_s34b_b79k", "--out", "x.pt"}), 1,
      {"--checkpoint laion2b_s34b_b79k", "pretrained tag", "nothing is downloaded",
       "get_pretrained_cfg('ViT-B-32', 'laion2b_s34b_b79k')"});
  expectErrorLine(
      exportTiny({"--checkpoint", "hf-hub:some/weights"}), 1,
      {"--checkpoint hf-hub:some/weights", "nothing is downloaded", "hf download some/weights"});
  expectErrorLine(exportModel({"--model", "hf-hub:some/weights", "--out", "x.pt"}), 1,
                  {"--model hf-hub:some/weights", "needs a download", "--config"});
}

TEST_F(Exporter, RefusesAModelThatOpenClipDoesNotHave) {
  expectErrorLine(exportModel({"--model", "ViT-B-23", "--out", "x.pt"}), 1,
                  {"no model 'ViT-B-23'", "did you mean ViT-B-32"});
  const std::pair<std::string, std::vector<std::string>> configs[] = {
      {"", {"the file is empty"}},
      {"{", {"not JSON"}},
      {"[]", {"not a JSON object"}},
      {R"({"embed_dim": 8, "text_cfg": {}})", {"lacks vision_cfg"}},
      {R"({"embed_dim": 8, "text_cfg": 1})", {"\"text_cfg\" is not a JSON object"}},
      {R"({"embed_dims": 8})", {"no key \"embed_dims\"", "did you mean embed_dim?"}},
      {R"({"vision_cfg": {"image_sizes": 8}})",
       {"no key \"image_sizes\" of \"vision_cfg\"", "did you mean image_size"}}};
  for (const auto &[config, texts] : configs) {
    writeFile(folder / "c.json", config);
    const Outcome outcome = exportModel({"--config", "c.json", "--out", "x.pt"});
    expectErrorLine(outcome, 1, texts);
    expectError(outcome, 1, {"c.json"});
  }
  EXPECT_EQ(files(), std::vector<std::string>{"c.json"});
}

TEST_F(Exporter, JudgesWeightsOnceTheyAreRead) {
  saveWeights(R"(
torch.save(w, "weights.pt")
torch.save({}, "nothing.pt")
torch.save({0: torch.ones(2)}, "numbers.pt")
torch.save({"state_dict": w, "optimizer": torch.nn.Linear(2, 2)}, "objects.pt")
torch.save({**w, "visual.proj": w["visual.proj"] * 1e9}, "large.pt")
w["visual.conv1.weight"].view(-1)[3] = float("nan")
torch.save(w, "nan.pt")
)");
  nlohmann::json larger = nlohmann::json::parse(readFile(kTiny));
  larger["vision_cfg"]["image_size"] = 64;
  larger["text_cfg"]["context_length"] = 20;
  writeFile(folder / "larger.json", larger.dump());
  const auto with = [&](std::string config, std::string checkpoint, std::string precision) {
    return std::vector<std::string>{"--config",    config,    "--checkpoint", checkpoint,
                                    "--precision", precision, "--out",        "x.pt"};
  };
  const std::vector<Outcome> outcomes =
      scriptEach("export_openclip",
                 {with(kTiny, "nan.pt", "fp32"), with(kTiny, "large.pt", "fp16"),
                  with(kTiny, "objects.pt", "fp32"), with(kTiny, models() / "pickle.pt", "fp32"),
                  with("larger.json", "weights.pt", "fp32"),
                  with(kTiny, models() / "model.safetensors", "fp32"),
                  with(kTiny, "nothing.pt", "fp32"), with(kTiny, "numbers.pt", "fp32")});
  expectErrorLine(outcomes[0], 1, {"nan.pt: ", "visual.conv1.weight", "NaN", "other weights"});
  expectErrorLine(outcomes[1], 1,
                  {"large.pt: ", "visual.proj", "infinite in fp16", "--precision fp32"});
  expectErrorLine(outcomes[2], 1,
                  {"objects.pt: ", "pickled object of class torch.nn.modules.linear.Linear",
                   "model.state_dict()"});
  EXPECT_EQ(outcomes[2].err.find("weights_only"), std::string::npos) << outcomes[2].err;
  expectErrorLine(outcomes[3], 1, {"pickle.pt: ", "not those of tiny", "Missing key"});
  EXPECT_EQ(outcomes[4].status, 0) << outcomes[4].err;
  EXPECT_NE(outcomes[4].out.find(" visual.positional_embedding was resized from [5, "),
            std::string::npos)
      << outcomes[4].out;
  EXPECT_NE(outcomes[4].out.find(" positional_embedding was resized from [16, "),
            std::string::npos);
  expectErrorLine(outcomes[5], 1, {"model.safetensors: ", "not those of tiny", "Missing key"});
  expectErrorLine(outcomes[6], 1, {"nothing.pt: it holds nothing", "no weights by name"});
  expectErrorLine(outcomes[7], 1, {"numbers.pt: it holds 0", "no weights by name"});
}

TEST_F(Exporter, TakesTheWeightsOfATorchScriptModule) {
  const Outcome outcome = exportTiny({"--checkpoint", models() / "tiny_fp32.pt"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(Exporter, SaysThatWeightsAreRandom) {
  const Outcome outcome = exportTiny({"--seed", "3"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("RANDOM WEIGHTS of seed 3; --checkpoint"), std::string::npos)
      << outcome.out;
  // The text has the form that --input takes.
  EXPECT_NE(outcome.out.find("traced with image=f32[2,3,32,32] text=i64[2,16],"), std::string::npos)
      << outcome.out;
}

TEST_F(Exporter, SaysThatThereIsNoCudaDevice) {
  if (hasGpu())
    GTEST_SKIP() << "there is a GPU";
  expectError(exportTiny({"--device", "cuda"}), 1, {"--device cuda", "no CUDA device"});
  EXPECT_TRUE(files().empty());
}

} // namespace
} // namespace cgc::e2e

// Tests of scripts/export_training_step.py: what the file holds, and errors.
#include "script.h"
#include "tests/paths.h"

namespace cgc::e2e {
namespace {

using TrainingExporter = ScriptTest;

TEST_F(TrainingExporter, TheFileIsOpenClipsStep) {
  const auto outcomes = scriptEach(
      "export_training_step",
      {{"--config", kSource / "tests/data/tiny.json", "--freeze", "visual.*", "--out", "step.pt"},
       {"--model", "coca_ViT-B-32", "--image-size", "64", "--width", "32", "--layers", "1",
        "--context-length", "6", "--out", "coca.pt"}});
  for (const Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcomes[0].out.find("with ClipLoss"), std::string::npos) << outcomes[0].out;
  EXPECT_NE(outcomes[1].out.find("with CoCaLoss"), std::string::npos) << outcomes[1].out;
  // The script itself compares losses, gradients and names with the eager model.
  const Outcome frozen = python({"-c", R"(
import torch
step = torch.jit.load("step.pt")
for name, value in step.named_parameters():
    assert value.requires_grad != name.startswith("visual."), name
loss, image, text, scale = step(torch.randn(3, 3, 32, 32), torch.randint(512, (3, 16)))
print([*loss.shape], [*image.shape], [*text.shape], [*scale.shape], loss.requires_grad)
)"});
  EXPECT_EQ(frozen.out, "[] [3, 32] [3, 32] [] True\n") << frozen.err;
}

TEST_F(TrainingExporter, NamesWrongArguments) {
  const std::string tiny = kSource / "tests/data/tiny.json";
  const auto outcomes =
      scriptEach("export_training_step",
                 {{"--config", tiny, "--out", "x.pt", "--freeze", "visul.conv1.weight"},
                  {"--config", tiny, "--out", "x.pt", "--freeze", "*"},
                  {"--config", tiny, "--out", "x.pt", "--loss", "coca"},
                  {"--config", tiny, "--out", "x.pt", "--loss", "siglip"},
                  {"--model", "RN50", "--out", "x.pt", "--layers", "2"},
                  {"--config", tiny, "--out", tiny},
                  {"--config", tiny, "--out", "x.pt", "--batch", "0"}});
  expectErrorLine(outcomes[0], 2, {"visul.conv1.weight", "did you mean visual.conv1.weight"});
  expectErrorLine(outcomes[1], 2, {"no parameter is left to train"});
  expectErrorLine(outcomes[2], 2, {"--loss coca", "no CoCa model"});
  expectErrorLine(outcomes[3], 2, {"--loss siglip", "no logit_bias"});
  expectErrorLine(outcomes[4], 2, {"--layers", "configuration of your own"});
  expectErrorLine(outcomes[5], 2, {"would be lost"});
  expectError(outcomes[6], 2, {"--batch must be at least 1"});
  EXPECT_TRUE(files().empty());
}

} // namespace
} // namespace cgc::e2e

// scripts/export_openclip.py: its random weights, checkpoints, and what it refuses.
#include "tool.h"

namespace cgc::e2e {
namespace {

const fs::path kSource = CGC_SOURCE_DIR;

class Exporter : public ToolTest {
protected:
  Outcome python(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), kSource / ".venv/bin/python");
    return runProgram(arguments, folder);
  }
  Outcome exportTiny(std::vector<std::string> more) {
    std::vector<std::string> arguments = {kSource / "scripts/export_openclip.py", "--config",
                                          kSource / "tests/data/tiny.json", "--out", "model.pt"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return python(arguments);
  }
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
  // The weights of the model of seed 0, in a model that another seed made.
  const Outcome saved = python({"-c",
                                "import sys, torch; m = torch.jit.load(sys.argv[1])\n"
                                "torch.save(dict(m.named_parameters()), 'weights.pt')",
                                models() / "tiny_fp32.pt"});
  ASSERT_EQ(saved.status, 0) << saved.err;
  const Outcome outcome = exportTiny({"--checkpoint", "weights.pt", "--seed", "1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
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

TEST_F(Exporter, RefusesACheckpointThatIsNone) {
  expectError(exportTiny({"--checkpoint", "missing.pt"}), 1, {"missing.pt: no such file"});
  writeFile(folder / "text.pt", "no weights\n");
  expectError(exportTiny({"--checkpoint", "text.pt"}), 1, {"text.pt: no weights for tiny"});
  // Weights, but of another model.
  expectError(exportTiny({"--checkpoint", models() / "pickle.pt"}), 1,
              {"pickle.pt: no weights for tiny", "Missing key"});
  EXPECT_EQ(files(), std::vector<std::string>{"text.pt"});
}

TEST_F(Exporter, SaysThatThereIsNoCudaDevice) {
  if (hasGpu())
    GTEST_SKIP() << "there is a GPU";
  expectError(exportTiny({"--device", "cuda"}), 1, {"--device cuda", "no CUDA device"});
  EXPECT_TRUE(files().empty());
}

} // namespace
} // namespace cgc::e2e

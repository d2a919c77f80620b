// Tests of the time and memory bounds of compiling ViT-B-32 with random weights (ctest label
// `families`); families_test.cpp compares it with LibTorch.
#include "tool.h"

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

} // namespace
} // namespace cgc::e2e

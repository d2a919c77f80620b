// Every OpenCLIP family of docs/supported-models.md: both towers and forward, batch 1 and 3, agree
// with LibTorch. Small models of each architecture; the real ones have the ctest label `families`.
#include "tool.h"

#include <algorithm>

namespace cgc::e2e {
namespace {

/// Square images of so many pixels, texts of so many tokens.
struct Inputs {
  int image, text;
};

struct Family {
  const char *name; ///< open_clip's.
  size_t outputs;   ///< Of forward: features of both towers, logit_scale and what else there is.
  int smallImage;   ///< As in make_families.py, which makes all small texts 16 tokens long.
  Inputs real;      ///< Of the model in its real size; zeros leave that out.
};

constexpr Family kFamilies[] = {{"ViT-B-32-quickgelu", 3, 32, {224, 77}},
                                {"ViT-H-14", 3, 32, {}}, // Too large to be tested as it is.
                                {"RN50", 3, 64, {224, 77}},
                                {"coca_ViT-B-32", 5, 32, {224, 76}},
                                {"convnext_base", 3, 64, {224, 77}},
                                {"ViT-B-16-SigLIP", 4, 32, {224, 64}},
                                {"EVA02-B-16", 3, 64, {224, 77}},
                                {"MobileCLIP-S1", 3, 64, {256, 77}},
                                {"ViTamin-B", 3, 64, {224, 77}}};

std::string testName(const testing::TestParamInfo<Family> &info) {
  std::string name = info.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

class Families : public ToolTest, public testing::WithParamInterface<Family> {
protected:
  void expectAgreement(const fs::path &model, Inputs inputs) {
    const std::string side = std::to_string(inputs.image);
    const Outcome compiled = cgc({"compile", model, "-o", "plan.cgplan", "--input",
                                  "image=f32[1,3," + side + "," + side + "]", "--input",
                                  "text=i64[1," + std::to_string(inputs.text) + "]", "--batch",
                                  "1,3", "--target", "cpu"});
    ASSERT_EQ(compiled.status, 0) << compiled.err;
    const Outcome compared = cgc({"compare", "plan.cgplan", model, "--json"});
    fs::remove(folder / "plan.cgplan");
    EXPECT_EQ(compared.status, 0) << compared.err << compared.out;
    const auto outputs = parseJson(compared, "compare")["outputs"];
    EXPECT_EQ(outputs.size(), 2 * (GetParam().outputs + 2)); // Two batches, two towers.
    for (const auto &output : outputs)
      EXPECT_LE(output["relative_l2"], 1e-5) << output;
  }
};

TEST_P(Families, SmallModelAgreesWithLibTorch) {
  expectAgreement(familyModels() / (std::string(GetParam().name) + ".pt"),
                  {GetParam().smallImage, 16});
}

INSTANTIATE_TEST_SUITE_P(OpenClip, Families, testing::ValuesIn(kFamilies), testName);

class RealFamilies : public Families {};

TEST_P(RealFamilies, AgreesWithLibTorch) {
  const fs::path source = CGC_SOURCE_DIR;
  const Outcome made =
      runProgram({source / ".venv/bin/python", source / "scripts/export_openclip.py", "--model",
                  GetParam().name, "--out", "model.pt"},
                 folder);
  ASSERT_EQ(made.status, 0) << made.err;
  expectAgreement(folder / "model.pt", GetParam().real);
  fs::remove(folder / "model.pt");
}

std::vector<Family> realFamilies() {
  std::vector<Family> result(std::begin(kFamilies), std::end(kFamilies));
  std::erase_if(result, [](const Family &family) { return family.real.image == 0; });
  return result;
}

INSTANTIATE_TEST_SUITE_P(OpenClip, RealFamilies, testing::ValuesIn(realFamilies()), testName);

} // namespace
} // namespace cgc::e2e

// Every OpenCLIP family of docs/supported-models.md: both towers and forward, batch 1 and 3, agree
// with LibTorch, as they are and with what passes select for a GPU. Small models of each
// architecture; the real ones have the ctest label `families`.
#include "passes/pipeline.h"
#include "tool.h"

#include <algorithm>
#include <regex>
#include <set>

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
  /// Compiles for batches 1 and 3, with these further arguments.
  void compile(const fs::path &model, Inputs inputs, std::vector<std::string> more) {
    const std::string side = std::to_string(inputs.image);
    std::vector<std::string> arguments = {
        "compile", model,
        "-o",      "plan.cgplan",
        "--input", "image=f32[1,3," + side + "," + side + "]",
        "--input", "text=i64[1," + std::to_string(inputs.text) + "]",
        "--batch", "1,3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome compiled = cgc(arguments);
    ASSERT_EQ(compiled.status, 0) << compiled.err;
  }

  void expectAgreement(const fs::path &model, Inputs inputs, const std::string &passes) {
    ASSERT_NO_FATAL_FAILURE(compile(model, inputs, {"--target", "cpu", "--passes", passes}));
    const Outcome compared = cgc({"compare", "plan.cgplan", model, "--json"});
    fs::remove(folder / "plan.cgplan");
    EXPECT_EQ(compared.status, 0) << compared.err << compared.out;
    const auto outputs = parseJson(compared, "compare")["outputs"];
    EXPECT_EQ(outputs.size(), 2 * (GetParam().outputs + 2)); // Two batches, two towers.
    for (const auto &output : outputs)
      EXPECT_LE(output["relative_l2"], 1e-5) << output;
  }
};

const std::string kPlain = passes::defaultPasses(DeviceKind::Cuda, passes::OptLevel::O0);
const std::string kSelected = passes::defaultPasses(DeviceKind::Cuda);

TEST_P(Families, SmallModelAgreesWithLibTorch) {
  expectAgreement(familyModels() / (std::string(GetParam().name) + ".pt"),
                  {GetParam().smallImage, 16}, kPlain);
}

TEST_P(Families, SmallModelWithFusedOpsAgreesWithLibTorch) {
  expectAgreement(familyModels() / (std::string(GetParam().name) + ".pt"),
                  {GetParam().smallImage, 16}, kSelected);
}

INSTANTIATE_TEST_SUITE_P(OpenClip, Families, testing::ValuesIn(kFamilies), testName);

/// The towers of ViTs.
class Towers : public Families {
protected:
  /// The ops of both towers and batches after the last pass.
  std::set<std::string> ops(std::vector<std::string> more) {
    more.insert(more.end(), {"--target", "cuda", "--dump-dir", "dump"});
    compile(familyModels() / (std::string(GetParam().name) + ".pt"), {GetParam().smallImage, 16},
            more);
    std::set<std::string> result;
    for (const char *entry :
         {"encode_image_0", "encode_image_1", "encode_text_0", "encode_text_1"}) {
      fs::path last;
      for (const auto &file : fs::directory_iterator(folder / "dump"))
        if (file.path().extension() == ".cgir" &&
            file.path().string().find(entry) != std::string::npos)
          last = std::max(last, file.path());
      const std::string text = readFile(last);
      EXPECT_NE(text, "") << entry;
      const std::regex call(" = ([a-z]+\\.[a-z0-9_]+)\\(");
      for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it)
        result.insert((*it)[1]);
    }
    fs::remove_all(folder / "dump");
    return result;
  }
};

TEST_P(Towers, OnCudaAreOpsThatHaveKernels) {
  const std::set<std::string> allowed = {
      "aten.linear", "aten.layer_norm", "aten.argmax",   "aten.view",  "aten.permute",
      "aten.select", "aten.slice",      "aten.expand",   "cgc.linear", "cgc.attention",
      "cgc.patches", "cgc.tokens",      "cgc.embedding", "cgc.rows"};
  for (const std::string &op : ops({"-O1"}))
    EXPECT_TRUE(allowed.contains(op)) << op;
}

TEST_P(Towers, WithoutOptimisationKeepTheModelsOps) {
  for (const std::string &op : ops({"-O0"}))
    EXPECT_FALSE(op.starts_with("cgc.")) << op;
}

/// With their constants folded; `compare` has the bound.
TEST_P(Towers, In16BitsNormaliseInTheirProducts) {
  const fs::path model = familyModels() / (std::string(GetParam().name) + ".pt");
  EXPECT_TRUE(ops({"--precision", "fp16"}).contains("cgc.norm_linear"));
  compile(model, {GetParam().smallImage, 16},
          {"--target", "cpu", "--passes",
           passes::defaultPasses(DeviceKind::Cuda, passes::OptLevel::O1, DType::F16)});
  const Outcome compared = cgc({"compare", "plan.cgplan", model});
  EXPECT_EQ(compared.status, 0) << compared.err << compared.out;
}

INSTANTIATE_TEST_SUITE_P(OpenClip, Towers, testing::Values(kFamilies[0], kFamilies[1]), testName);

class RealFamilies : public Families {};

TEST_P(RealFamilies, AgreesWithLibTorch) {
  const fs::path source = CGC_SOURCE_DIR;
  const Outcome made =
      runProgram({source / ".venv/bin/python", source / "scripts/export_openclip.py", "--model",
                  GetParam().name, "--out", "model.pt"},
                 folder);
  ASSERT_EQ(made.status, 0) << made.err;
  expectAgreement(folder / "model.pt", GetParam().real, kPlain);
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

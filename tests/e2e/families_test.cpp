// Tests of every model of docs/supported-models.md: all methods agree with LibTorch at batch 1 and
// 3, with the default passes and with those that select fused ops for a GPU, and rows do not depend
// on each other. These are small models of each architecture; those in real size have the ctest
// label `families`.
#include "families.h"
#include "passes/pipeline.h"
#include "script.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <regex>
#include <set>

namespace cgc::e2e {
namespace {

const std::string kPlain = passes::toString(passes::defaultPasses());
const std::string kSelected = passes::toString(passes::defaultPasses({.target = DeviceKind::Cuda}));

class Families : public FamilyTest {
protected:
  fs::path small() const { return familyModels() / (name() + ".pt"); }
};

TEST_P(Families, SmallModelAgreesWithLibTorch) {
  expectAgreement(small(), "small", {{{"--passes", kPlain}, small(), GetParam().outputs}});
}

TEST_P(Families, SmallModelWithFusedOpsAgreesWithLibTorch) {
  expectAgreement(small(), "fused", {{{"--passes", kSelected}, small(), GetParam().outputs}});
}

/// Writes a batch of 3 for each input of an entry, and its row 1 as a batch of 1. Returns the
/// arguments of `cgc run` for both.
std::array<std::vector<std::string>, 2> writeRows(const nlohmann::json &inputs,
                                                  const fs::path &folder) {
  std::array<std::vector<std::string>, 2> arguments;
  for (const auto &input : inputs) {
    const std::string name = input["name"];
    const auto shape = input["shape"].get<std::vector<int64_t>>();
    const bool isFloat = input["dtype"] == "f32";
    std::vector<float> floats;
    std::vector<int64_t> ids;
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    for (int64_t i = 0; i < count; ++i) { // Any numbers without a period that fits the row.
      floats.push_back(float(std::sin(double(i) * 12.9898) * 1.5));
      ids.push_back(3 + (i * i + 7 * i) % 29);
    }
    for (const bool alone : {false, true}) {
      std::vector<int64_t> sizes = shape;
      const int64_t row = count / shape[0], begin = alone ? row : 0, end = alone ? 2 * row : count;
      if (alone)
        sizes[0] = 1;
      const std::string file = name + (alone ? ".row.npy" : ".npy");
      if (isFloat)
        writeNpy(folder / file, "<f4", sizes,
                 std::vector<float>(floats.begin() + begin, floats.begin() + end));
      else
        writeNpy(folder / file, "<i8", sizes,
                 std::vector<int64_t>(ids.begin() + begin, ids.begin() + end));
      arguments[alone].insert(arguments[alone].end(), {"--input", name + "=@" + file});
    }
  }
  return arguments;
}

/// The rows of all entries are independent, and row 1 of a batch of 3 is what it is alone.
TEST_P(Families, RowsOfSmallModelAreIndependent) {
  compile(small(), {"--target", "cpu"});
  const auto json = parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan");
  for (const auto &entry : json["entries"]) {
    const std::string name = entry["name"];
    SCOPED_TRACE(name);
    EXPECT_EQ(entry["rows"]["independent"], true) << entry["rows"];
    const auto &bucket = entry["buckets"][1];
    const auto arguments = writeRows(bucket["inputs"], folder);
    for (const bool alone : {false, true}) {
      std::vector<std::string> command = {"run", "plan.cgplan", "--entry",
                                          name,  "--output",    alone ? "alone.npy" : "batch.npy"};
      command.insert(command.end(), arguments[alone].begin(), arguments[alone].end());
      const Outcome outcome = cgc(command);
      ASSERT_EQ(outcome.status, 0) << outcome.err;
    }
    for (size_t i = 0; i < bucket["outputs"].size(); ++i) {
      const std::string suffix = bucket["outputs"].size() == 1 ? "" : "." + std::to_string(i);
      const fs::path batchFile = folder / ("batch" + suffix + ".npy"),
                     aloneFile = folder / ("alone" + suffix + ".npy");
      const auto &output = bucket["outputs"][i];
      const bool hasRows = output.contains("batch_dim");
      SCOPED_TRACE(output["name"]);
      if (output["dtype"] != "f32") { // Token ids.
        const auto data = [](const fs::path &path) {
          return readFile(path).substr(10 + npyHeader(path).size());
        };
        const std::string row = data(aloneFile);
        EXPECT_EQ(data(batchFile).substr(hasRows ? row.size() : 0, row.size()), row);
        continue;
      }
      const auto batch = npyFloats(batchFile), alone = npyFloats(aloneFile);
      ASSERT_EQ(batch.size(), alone.size() * (hasRows ? 3 : 1));
      for (size_t j = 0; j < alone.size(); ++j)
        ASSERT_NEAR(batch[(hasRows ? alone.size() : 0) + j], alone[j],
                    1e-4 * (1 + std::abs(alone[j])))
            << "element " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Families, testing::ValuesIn(kFamilies), testName);

class RealFamilies : public FamilyTest {};

TEST_P(RealFamilies, AgreesWithLibTorch) {
  const fs::path model = makeReal(name());
  expectAgreement(model, "real", {{{"--passes", kPlain}, model, GetParam().outputs}});
}

INSTANTIATE_TEST_SUITE_P(All, RealFamilies, testing::ValuesIn(kFamilies), testName);

// Scripted

std::vector<Family> scripted() {
  std::vector<Family> result(std::begin(kFamilies), std::end(kFamilies));
  std::erase_if(result, [](const Family &family) { return family.scripted == 0; });
  return result;
}

class ScriptedFamilies : public FamilyTest {};

TEST_P(ScriptedFamilies, SmallModelAgreesWithItselfAndTheTracedOne) {
  const fs::path model = familyModels() / (name() + ".scripted.pt");
  const fs::path traced = familyModels() / (name() + ".pt");
  // The default passes for target cpu, and those that select fused ops for a GPU.
  const std::vector<std::string> kinds[] = {{}, {"--passes", kSelected}};
  std::vector<Check> checks;
  for (const std::vector<std::string> &passes : kinds) {
    checks.push_back({passes, model, GetParam().scripted});
    checks.push_back({passes, traced, GetParam().scripted});
    if (name() != "coca_ViT-B-32")
      continue;
    // The traced module has no _encode_text.
    checks.back().arguments.insert(checks.back().arguments.end(), {"--entry", "forward"});
    checks.back().outputs = 5;
  }
  expectAgreement(model, "scripted", checks);
}

INSTANTIATE_TEST_SUITE_P(All, ScriptedFamilies, testing::ValuesIn(scripted()), testName);

class ScriptedRealFamilies : public FamilyTest {};

TEST_P(ScriptedRealFamilies, AgreesWithLibTorch) {
  const fs::path model = makeReal(name() + ".scripted");
  expectAgreement(model, "scripted_real", {{{"--passes", kSelected}, model, GetParam().scripted}});
}

INSTANTIATE_TEST_SUITE_P(All, ScriptedRealFamilies, testing::ValuesIn(scripted()), testName);

// The page

class SupportedModels : public ScriptTest {};

/// The page has each model and column, with the figures of the run that wrote it.
TEST_F(SupportedModels, AreThoseOfTheTests) {
  const Outcome outcome = script("supported_models", {"--check"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

const std::string kTowers = "encode_image,encode_text";

/// The towers of ViTs and CoCa.
class Towers : public Families {
protected:
  /// The ops of both towers and batches after the last pass.
  std::set<std::string> ops(std::vector<std::string> more) {
    more.insert(more.end(), {"--target", "cuda", "--dump-dir", "dump"});
    compile(small(), more);
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
    fs::remove_all(folder / "dump"); // The next call writes a new dump.
    return result;
  }
};

TEST_P(Towers, OnCudaCallNothingOfLibTorch) {
  const std::vector<std::string> kinds[] = {{"--precision", "fp32"},
                                            {"--precision", "bf16"},
                                            {"--precision", "fp16"},
                                            {"--precision", "fp16", "--arch", "sm_80"}};
  for (const std::vector<std::string> &kind : kinds) {
    std::vector<std::string> arguments = kind;
    arguments.insert(arguments.end(), {"--target", "cuda", "-O1", "--entry", kTowers});
    ASSERT_EQ(compile(small(), arguments).status, 0);
    const auto plan = parseJson(cgc({"inspect", "plan.cgplan", "--json"}), "plan");
    size_t buckets = 0;
    for (const auto &entry : plan["entries"])
      for (const auto &bucket : entry["buckets"]) {
        ++buckets;
        for (const auto &[record, count] : bucket["records_by_kind"].items())
          EXPECT_FALSE(record.starts_with("aten::"))
              << entry["name"] << ' ' << bucket["inputs"] << ' ' << testing::PrintToString(kind)
              << ' ' << record << ": " << count;
      }
    EXPECT_EQ(buckets, 4u);
  }
}

TEST_P(Towers, WithoutOptimizationKeepTheModelsOps) {
  for (const std::string &op : ops({"-O0"}))
    EXPECT_FALSE(op.starts_with("cgc.")) << op;
}

/// The constants of the norm are folded into the weights. expectAgreement() checks the error.
TEST_P(Towers, In16BitsNormalizeInTheirGemms) {
  EXPECT_TRUE(ops({"--precision", "fp16"}).contains("cgc.norm_linear"));
  compile(small(), {"--target", "cpu", "--passes",
                    passes::toString(passes::defaultPasses(
                        {.target = DeviceKind::Cuda, .precision = DType::F16}))});
  const Outcome compared = cgc({"compare", "plan.cgplan", small()});
  EXPECT_EQ(compared.status, 0) << compared.err << compared.out;
}

INSTANTIATE_TEST_SUITE_P(All, Towers, testing::Values(kFamilies[0], kFamilies[1], kFamilies[5]),
                         testName);
/// Towers that pool by the mean, at an end token, and by attention; heads of 104, 88 and 72
/// columns.
INSTANTIATE_TEST_SUITE_P(Others, Towers,
                         testing::Values(Family{"ViT-bigG-14-CLIPA", 5, 0},
                                         Family{"ViT-H-14-worldwide", 5, 0},
                                         Family{"ViT-SO400M-14-SigLIP", 6, 0}),
                         testName);

/// OpenCLIP's own vision transformers, in which every op is fused.
class VitTowers : public Towers {};

TEST_P(VitTowers, OnCudaAreFusedOps) {
  const std::set<std::string> allowed = {
      "aten.linear", "aten.layer_norm", "aten.argmax",   "aten.view",  "aten.permute",
      "aten.select", "aten.slice",      "aten.expand",   "cgc.linear", "cgc.attention",
      "cgc.patches", "cgc.tokens",      "cgc.embedding", "cgc.rows"};
  for (const std::string &op : ops({"-O1"}))
    EXPECT_TRUE(allowed.contains(op)) << op;
}

INSTANTIATE_TEST_SUITE_P(All, VitTowers, testing::Values(kFamilies[0], kFamilies[1]), testName);

} // namespace
} // namespace cgc::e2e

// Families: compiles them, compares them with LibTorch and records the results.
#include "families.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace cgc::e2e {

/// OpenCLIP's towers, each with one output.
constexpr size_t kTowers = 2;

std::string testName(const testing::TestParamInfo<Family> &info) {
  std::string name = info.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

fs::path FamilyTest::makeReal(const std::string &name) {
  const fs::path source = CGC_SOURCE_DIR;
  const Outcome made = runProgram(
      {source / ".venv/bin/python", source / "tests/e2e/make_families.py", folder, "--real", name},
      folder);
  if (made.status != 0)
    throw std::runtime_error("no model: " + made.err);
  return folder / (name + ".pt");
}

Outcome FamilyTest::compile(const fs::path &model, const std::vector<std::string> &more) {
  std::vector<std::string> arguments = {"compile", model, "-o", "plan.cgplan", "--batch", "1,3"};
  std::ifstream inputs(fs::path(model).replace_extension("inputs"));
  for (std::string input; std::getline(inputs, input);)
    arguments.insert(arguments.end(), {"--input", input});
  arguments.insert(arguments.end(), more.begin(), more.end());
  Outcome compiled = cgc(arguments);
  EXPECT_EQ(compiled.status, 0) << compiled.err;
  return compiled;
}

void FamilyTest::expectAgreement(const fs::path &model, const std::vector<fs::path> &references,
                                 const std::string &column, std::vector<std::string> more) {
  const fs::path results = fs::path(CGC_BINARY_DIR) / "e2e" / "results";
  const fs::path result = results / (name() + "." + column + ".json");
  fs::create_directories(results);
  fs::remove(result);
  more.insert(more.end(), {"--target", "cpu"});
  const Outcome compiled = compile(model, more);
  if (compiled.status != 0)
    return;
  double worst = 0;
  std::vector<std::string> entries;
  for (const fs::path &reference : references) {
    const Outcome compared = cgc({"compare", "plan.cgplan", reference, "--json"});
    EXPECT_EQ(compared.status, 0) << compared.err << compared.out;
    const auto outputs = parseJson(compared, "compare")["outputs"];
    // With two batches. Of CoCa's methods torch.jit.script keeps forward, and in real size a tower.
    if (column.starts_with("scripted")) {
      EXPECT_GE(outputs.size(), 2 * (GetParam().outputs - kTowers));
    } else {
      EXPECT_EQ(outputs.size(), 2 * GetParam().outputs);
    }
    for (const auto &output : outputs) {
      EXPECT_LE(output["relative_l2"], 1e-5) << output;
      worst = std::max<double>(worst, output["relative_l2"]);
      if (const std::string entry = output["entry"]; !std::ranges::count(entries, entry))
        entries.push_back(entry);
    }
  }
  if (!HasFailure())
    writeFile(result, nlohmann::json({{"family", name()},
                                      {"column", column},
                                      {"entries", entries},
                                      {"relative_l2", worst},
                                      {"compile_cpu_seconds", compiled.cpuSeconds}})
                          .dump());
}

} // namespace cgc::e2e

// Families: compiles models, compares them with LibTorch and records the results.
#include "families.h"
#include "tests/paths.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <stdexcept>

namespace cgc::e2e {

namespace {

/// The largest relative L2 to LibTorch that a test accepts, by what was recorded for the page.
/// Where results were equal, the plan makes LibTorch's own calls, with operands at other addresses,
/// from which some of its kernels choose an order of additions. Elsewhere a processor with other
/// instructions adds in another order.
double boundOf(const std::string &family, const std::string &column) {
  static const nlohmann::json recorded =
      nlohmann::json::parse(readFile(test::sourceDir() / "tests/data/supported_models.json"));
  for (const auto &result : recorded["results"])
    if (result["family"] == family && result["column"] == column)
      return result["relative_l2"] != 0 ? 1e-5 : 1e-6;
  return 1e-5; // SupportedModels.AreThoseOfTheTests finds what is missing.
}

} // namespace

std::string testName(const testing::TestParamInfo<Family> &info) {
  std::string name = info.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

fs::path FamilyTest::makeReal(const std::string &name) {
  const fs::path source = test::sourceDir();
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

void FamilyTest::expectAgreement(const fs::path &model, const std::string &column,
                                 const std::vector<Check> &checks) {
  const fs::path results = outputDir() / "results";
  const fs::path result = results / (name() + "." + column + ".json");
  fs::create_directories(results);
  fs::remove(result);
  const double bound = boundOf(name(), column);
  double worst = 0, cpuSeconds = 0;
  std::set<std::string> entries;
  for (const Check &check : checks) {
    std::vector<std::string> arguments = check.arguments;
    arguments.insert(arguments.end(), {"--target", "cpu"});
    const Outcome compiled = compile(model, arguments);
    if (compiled.status != 0)
      return;
    cpuSeconds = std::max(cpuSeconds, compiled.cpuSeconds);
    const Outcome compared = cgc({"compare", "plan.cgplan", check.reference, "--json"});
    EXPECT_EQ(compared.status, 0) << compared.err << compared.out;
    const auto outputs = parseJson(compared, "compare")["outputs"];
    EXPECT_EQ(outputs.size(), 2 * check.outputs) << outputs; // Each output for two batches.
    for (const auto &output : outputs) {
      EXPECT_LE(output["relative_l2"], bound) << output;
      worst = std::max<double>(worst, output["relative_l2"]);
      entries.insert(output["entry"]);
    }
  }
  if (HasFailure())
    return;
  writeFile(result, nlohmann::json({{"family", name()},
                                    {"column", column},
                                    {"entries", entries},
                                    {"relative_l2", worst},
                                    {"compile_cpu_seconds", cpuSeconds}})
                        .dump());
}

} // namespace cgc::e2e

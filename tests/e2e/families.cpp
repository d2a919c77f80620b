// Families: compiles models, compares them with LibTorch and records the results.
#include "families.h"
#include "tests/paths.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

namespace cgc::e2e {

namespace {

/// Compares `worst` with the figure of a cell of the page, which scripts/supported_models.py rounds
/// up to a power of ten. LibTorch adds in another order on another machine, so the last bits differ
/// and the figure may be one power off. An "equal" plan makes LibTorch's own calls, so it is equal
/// on any machine.
void expectFigureOfThePage(double worst, const std::string &cell) {
  if (cell == "equal") {
    EXPECT_EQ(worst, 0);
    return;
  }
  const double figure = std::atof(cell.c_str());
  EXPECT_GT(figure, 0) << "docs/supported-models.md says '" << cell << "'";
  EXPECT_LE(worst, 10 * figure) << "docs/supported-models.md is better than this";
  EXPECT_GT(worst, figure / 100) << "docs/supported-models.md is worse than this";
}

} // namespace

const std::map<std::string, PageRow> &pageRows() {
  static const std::map<std::string, PageRow> rows = [] {
    // Must match COLUMNS in scripts/supported_models.py.
    const std::vector<std::pair<std::string, std::string>> columns = {
        {"small", "small"},
        {"fused", "small, fused ops"},
        {"real", "real size"},
        {"scripted", "scripted, small"},
        {"scripted_real", "scripted, real size"}};
    std::string head = "| model | entries |";
    for (const auto &[column, title] : columns)
      head += " " + title + " |";
    std::map<std::string, PageRow> all;
    std::ifstream file(test::sourceDir() / "docs/supported-models.md");
    std::string line;
    while (std::getline(file, line) && line != head)
      ;
    if (!file)
      throw std::runtime_error("docs/supported-models.md has no table with these columns: " + head);
    std::getline(file, line); // The separator line below the heading.
    while (std::getline(file, line) && line.starts_with("| `")) {
      std::vector<std::string> cells;
      std::stringstream split(line.substr(1));
      for (std::string cell; std::getline(split, cell, '|');) {
        std::erase_if(cell, [](char c) { return c == ' ' || c == '`'; });
        cells.push_back(cell);
      }
      if (cells.size() != 2 + columns.size())
        throw std::runtime_error("docs/supported-models.md: not a row of the table: " + line);
      PageRow &row = all[cells[0]];
      for (size_t i = 0; i < columns.size(); ++i)
        if (!cells[2 + i].empty())
          row[columns[i].first] = cells[2 + i];
    }
    return all;
  }();
  return rows;
}

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
  const fs::path results = test::buildDir() / "e2e" / "results";
  const fs::path result = results / (name() + "." + column + ".json");
  fs::create_directories(results);
  fs::remove(result);
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
      EXPECT_LE(output["relative_l2"], 1e-5) << output;
      worst = std::max<double>(worst, output["relative_l2"]);
      entries.insert(output["entry"]);
    }
  }
  if (HasFailure())
    return;
  // Written before the comparison with the page: the script makes the page from these results.
  writeFile(result, nlohmann::json({{"family", name()},
                                    {"column", column},
                                    {"entries", entries},
                                    {"relative_l2", worst},
                                    {"compile_cpu_seconds", cpuSeconds}})
                        .dump());
  const auto row = pageRows().find(name());
  ASSERT_TRUE(row != pageRows().end() && row->second.contains(column))
      << "docs/supported-models.md has no figure; scripts/supported_models.py writes it";
  SCOPED_TRACE("of column " + column + "; scripts/supported_models.py writes the page anew");
  expectFigureOfThePage(worst, row->second.at(column));
}

} // namespace cgc::e2e

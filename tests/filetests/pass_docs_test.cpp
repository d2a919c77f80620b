// PassDocs: docs/passes.md has a section for each pass, and its examples match the passes' output.
#include "passes/pipeline.h"
#include "tests/filetests/run_pipeline.h"
#include "tests/paths.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace cgc {
namespace {

const fs::path kDocs = test::sourceDir() / "docs" / "passes.md";
/// A range of a text; `end` is npos if there is none.
struct Span {
  size_t begin = 0, end = std::string::npos;
  bool isFound() const { return end != std::string::npos; }
  std::string of(const std::string &text) const { return text.substr(begin, end - begin); }
};

/// Returns the range between `open` and the first `close` after it, searched from `at`.
Span between(const std::string &text, const std::string &open, const std::string &close,
             size_t at) {
  const size_t found = text.find(open, at);
  if (found == std::string::npos)
    return {};
  return {found + open.size(), text.find(close, found + open.size())};
}

/// Returns the lines of the first fenced block after `at`; the block may be empty.
Span blockAfter(const std::string &text, size_t at) {
  const std::string fence = "\n```\n";
  const size_t open = text.find(fence, at);
  if (open == std::string::npos)
    return {};
  // In an empty block, the line break before the second fence is the one after the first.
  const size_t close = text.find(fence, open + fence.size() - 1);
  return {open + fence.size(), close == std::string::npos ? close : close + 1};
}

/// The example of a pass's section.
struct Example {
  Span before, pipeline, after;
};

constexpr const char *kExpected = "; docs/adding-a-pass.md shows what a section looks like";

/// Fails the test and returns nullopt if there is no example.
std::optional<Example> findExample(const std::string &docs, const std::string &pass) {
  const size_t section = docs.find("\n## " + pass + "\n");
  if (section == std::string::npos) {
    ADD_FAILURE() << "no section '## " << pass << "'" << kExpected;
    return std::nullopt;
  }
  const size_t next = std::min(docs.find("\n## ", section + 1), docs.size());
  const auto isHere = [&](const Span &span) { return span.isFound() && span.end < next; };
  Example example{.before = blockAfter(docs, section)};
  example.pipeline = between(docs, "`--passes '", "'` gives", example.before.end);
  example.after = blockAfter(docs, example.pipeline.end);
  if (isHere(example.before) && isHere(example.pipeline) && isHere(example.after))
    return example;
  ADD_FAILURE() << "section '## " << pass << "' has not "
                << (!isHere(example.before)     ? "a block of IR text"
                    : !isHere(example.pipeline) ? "`--passes '...'` gives"
                                                : "a block behind `--passes '...'` gives")
                << kExpected;
  return std::nullopt;
}

/// Returns the output of the example's passes, as the lines of a block.
std::optional<std::string> runExample(const std::string &docs, const Example &example) {
  const auto output = runPipeline(kDocs, example.before.of(docs), example.pipeline.of(docs));
  if (!output)
    return std::nullopt;
  return llvm::StringRef(*output).rtrim('\n').str() + "\n";
}

std::vector<std::string> passNames() {
  std::vector<std::string> names;
  for (const passes::RegisteredPass &pass : passes::allPasses())
    names.push_back(pass.name);
  return names;
}

class PassDocs : public testing::TestWithParam<std::string> {};

TEST_P(PassDocs, ExampleIsTrue) {
  const std::string &pass = GetParam();
  std::string docs = readFile(kDocs);
  const auto example = findExample(docs, pass);
  ASSERT_TRUE(example);
  const std::string passes = example->pipeline.of(docs);
  EXPECT_TRUE(llvm::StringRef(passes).starts_with(pass)) << passes;
  const auto output = runExample(docs, *example);
  ASSERT_TRUE(output);
  if (std::getenv("CGC_BLESS")) {
    docs.replace(example->after.begin, example->after.end - example->after.begin, *output);
    std::ofstream(kDocs, std::ios::binary) << docs;
    return;
  }
  EXPECT_EQ(example->after.of(docs), *output) << "Run with CGC_BLESS=1 to accept what it is now.";
}

TEST(PassDocsSections, ABlockMayBeEmptyUntilItIsFilled) {
  const std::string head = "\n## cse\n\n```\ngraph @f() {\n  output\n}\n```\n\n"
                           "`--passes 'cse'` gives\n\n";
  for (const char *lines : {"", "\n", "a\n", "a\nb\n"}) {
    const std::string docs = head + "```\n" + lines + "```\n\n## dce\n";
    const auto example = findExample(docs, "cse");
    ASSERT_TRUE(example) << lines;
    EXPECT_EQ(example->before.of(docs), "graph @f() {\n  output\n}\n");
    EXPECT_EQ(example->pipeline.of(docs), "cse");
    EXPECT_EQ(example->after.of(docs), lines);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, PassDocs, testing::ValuesIn(passNames()), [](const auto &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(PassDocsSections, TheDefaultPipelineIsSpelledOut) {
  const std::string pipeline =
      passes::toString(passes::defaultPasses({.target = DeviceKind::Cuda}));
  EXPECT_NE(readFile(kDocs).find("\n```\n" + pipeline + "\n```\n"), std::string::npos)
      << "docs/passes.md should have: " << pipeline;
}

/// Returns a table of default passes as it is in the docs.
std::string tableOf(llvm::ArrayRef<passes::DefaultPass> rows, bool hasEntries) {
  std::string table = hasEntries ? "| pass | entries | when | why there |\n|---|---|---|---|\n"
                                 : "| pass | when | why there |\n|---|---|---|\n";
  for (const passes::DefaultPass &row : rows) {
    table += ("| `" + row.pass + "` | ").str();
    if (hasEntries)
      table += (row.entries.name + " | ").str();
    table += (row.when.name + " | " + row.reason + " |\n").str();
  }
  return table;
}

TEST(PassDocsSections, TheTablesAreThoseOfTheCode) {
  const std::string docs = readFile(kDocs);
  for (const std::string &table :
       {tableOf(passes::inferenceTable(), false), tableOf(passes::selectionTable(), false),
        tableOf(passes::trainingTable(), true)})
    EXPECT_NE(docs.find("\n\n" + table + "\n"), std::string::npos)
        << "docs/passes.md should have:\n"
        << table;
}

TEST(PassDocsSections, EveryOneIsAPass) {
  const std::string docs = readFile(kDocs);
  for (size_t at = docs.find("\n## "); at != std::string::npos; at = docs.find("\n## ", at + 1)) {
    const std::string title = docs.substr(at + 4, docs.find('\n', at + 1) - at - 4);
    EXPECT_TRUE(llvm::is_contained(passNames(), title)) << "no pass '" << title << "'";
  }
}

} // namespace
} // namespace cgc

// PassDocs: docs/passes.md has a section for each pass, and its examples are what the passes do.
#include "passes/pipeline.h"
#include "tests/filetests/run_pipeline.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace cgc {
namespace {

const fs::path kDocs = fs::path(CGC_SOURCE_DIR) / "docs" / "passes.md";
constexpr llvm::StringLiteral kFence = "\n```\n";

/// The text between `begin` and `end` from `at` on; its place, or npos.
struct Span {
  size_t begin = std::string::npos, end = std::string::npos;
  bool isFound() const { return begin != std::string::npos && end != std::string::npos; }
  std::string of(const std::string &text) const { return text.substr(begin, end - begin); }
};

Span between(const std::string &text, const std::string &begin, const std::string &end, size_t at) {
  Span span;
  const size_t found = text.find(begin, at);
  if (found == std::string::npos)
    return span;
  span.begin = found + begin.size();
  span.end = text.find(end, span.begin);
  return span;
}

std::vector<std::string> passNames() {
  return {
#define CGC_MODULE_PASS(name, Type) name,
#define CGC_GRAPH_PASS(name, Type) name,
#include "passes/passes.def"
  };
}

class PassDocs : public testing::TestWithParam<std::string> {};

TEST_P(PassDocs, ExampleIsTrue) {
  const std::string &pass = GetParam();
  std::string docs = readFile(kDocs);
  const size_t section = docs.find("\n## " + pass + "\n");
  ASSERT_NE(section, std::string::npos) << "docs/passes.md has no section '## " << pass << "'";
  const size_t next = std::min(docs.find("\n## ", section + 1), docs.size());
  const std::string fence = kFence.str();
  const Span before = between(docs, fence, fence, section);
  ASSERT_TRUE(before.isFound()) << "no example";
  const Span pipeline = between(docs, "`--passes '", "'` gives", before.end);
  ASSERT_TRUE(pipeline.isFound()) << "no `--passes '...'` gives";
  const Span after = between(docs, fence, fence, pipeline.end);
  ASSERT_TRUE(after.isFound() && after.end < next) << "no block behind `--passes '...'` gives";
  const std::string passes = pipeline.of(docs);
  EXPECT_TRUE(llvm::StringRef(passes).starts_with(pass)) << passes;

  const auto output = runPipeline(kDocs, before.of(docs), passes);
  ASSERT_TRUE(output);
  const std::string expected = llvm::StringRef(*output).rtrim('\n').str();
  if (std::getenv("CGC_BLESS")) {
    docs.replace(after.begin, after.end - after.begin, expected);
    std::ofstream(kDocs, std::ios::binary) << docs;
    return;
  }
  EXPECT_EQ(after.of(docs), expected) << "Run with CGC_BLESS=1 to accept what it is now.";
}

INSTANTIATE_TEST_SUITE_P(Rows, PassDocs, testing::ValuesIn(passNames()), [](const auto &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(PassDocsSections, TheDefaultPipelineIsSpelledOut) {
  const std::string pipeline = passes::defaultPasses(DeviceKind::Cuda);
  EXPECT_NE(readFile(kDocs).find("\n```\n" + pipeline + "\n```\n"), std::string::npos)
      << "docs/passes.md should have: " << pipeline;
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

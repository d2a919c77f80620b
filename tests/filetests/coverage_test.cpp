// Coverage: every row of the tables of ops, passes and offenders has a file test that exercises it,
// and so has every reason for which a pattern declines a candidate.
#include "ir/op_def.h"
#include "ir/text/text.h"
#include "passes/manager/pass_manager.h"
#include "tests/filetests/run_pipeline.h"
#include "tests/paths.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cgc {
namespace {

const fs::path kRoot = test::sourceDir() / "tests" / "filetests";

/// Returns the tests `<folder>/<name>.cgir` and `<folder>/<name>_<case>.cgir`, in order.
std::vector<fs::path> testsOf(const std::string &name, const char *folder) {
  std::vector<fs::path> tests;
  for (const auto &entry : fs::directory_iterator(kRoot / folder)) {
    const std::string path = entry.path().filename().string();
    llvm::StringRef file = path;
    if (file.consume_front(name) && file.consume_back(".cgir") &&
        (file.empty() || file.starts_with("_")))
      tests.push_back(entry.path());
  }
  llvm::sort(tests);
  return tests;
}

/// Returns the text without its comments.
std::string codeOf(llvm::StringRef text) {
  std::string code;
  for (llvm::StringRef line : llvm::split(text, '\n'))
    code += line.split(';').first.str() + "\n";
  return code;
}

/// Returns true if `code` calls the op `name`, in place or not. An op with a longer name does not
/// count.
bool calls(llvm::StringRef code, const std::string &name) {
  return llvm::any_of(std::initializer_list<const char *>{"(", "_(", " \""},
                      [&](const char *end) { return code.contains(" " + name + end); });
}

TEST(FileTestCoverage, EveryOp) {
  for (unsigned i = 0; i < ir::kNumOps; ++i) {
    const std::string op = ir::opName(static_cast<ir::OpKind>(i)).str();
    auto [space, name] = llvm::StringRef(op).split('.');
    const std::string file = (space == "cgc" ? "cgc_" : "") + name.str();
    const auto tests = testsOf(file, "ops");
    EXPECT_FALSE(tests.empty()) << "tests/filetests/ops/" << file << ".cgir is missing";
    EXPECT_TRUE(tests.empty() ||
                llvm::any_of(
                    tests, [&](const fs::path &test) { return calls(codeOf(readFile(test)), op); }))
        << "none of the tests/filetests/ops/" << file << "*.cgir calls " << op;
  }
}

/// Returns the pipeline of a file test; empty if it runs none.
std::string pipelineOf(llvm::StringRef text) {
  llvm::StringRef line = text.split('\n').first.trim();
  return line.consume_front("; test: passes=") ? line.str() : "";
}

TEST(FileTestCoverage, EveryPass) {
  // An extension point does nothing by itself: tests/unit/passes tests it with substitutions.
  // States are tied by their memory, which text does not have: tests/unit/passes tests that, too.
  const std::string extensionPoints[] = {"module-substitution", "op-substitution", "tie-states"};
  for (const auto &[pass, explains, create] : passes::allPasses()) {
    std::string file = pass;
    std::replace(file.begin(), file.end(), '-', '_');
    std::set<std::string> changing;
    const auto tests = testsOf(file, "passes");
    EXPECT_FALSE(tests.empty()) << "tests/filetests/passes/" << file << ".cgir is missing";
    for (const fs::path &test : tests) {
      const std::string text = readFile(test);
      runPipeline(test, text, pipelineOf(text), &changing);
    }
    EXPECT_TRUE(tests.empty() || changing.contains(pass) ||
                llvm::is_contained(extensionPoints, pass))
        << "in none of the tests/filetests/passes/" << file
        << "*.cgir does the pass change or refuse something";
  }
}

TEST(FileTestCoverage, EveryPassThatExplains) {
  for (const auto &[pass, explains, create] : passes::allPasses()) {
    // Its patterns are those that a caller registers: tests/unit/passes has them.
    if (!explains || pass == "op-substitution")
      continue;
    std::string file = pass + "_explain";
    std::replace(file.begin(), file.end(), '-', '_');
    const auto tests = testsOf(file, "passes");
    EXPECT_FALSE(tests.empty()) << "tests/filetests/passes/" << file << ".cgir is missing";
    for (const fs::path &test : tests) {
      const std::string text = readFile(test);
      EXPECT_TRUE(llvm::StringRef(text).starts_with("; test: explain=" + pass + "\n")) << test;
      const auto output = explainPass(test, text, pass);
      EXPECT_TRUE(output && output->find("remark: ") != std::string::npos) << test;
    }
  }
}

/// Returns the string literals in the first statement of C++ `code`; adjacent ones are one.
std::vector<std::string> literalsOf(llvm::StringRef code) {
  std::vector<std::string> literals;
  bool isAdjacent = false;
  for (size_t i = 0; i < code.size() && code[i] != ';'; ++i) {
    if (code[i] != '"') {
      isAdjacent &= llvm::isSpace(code[i]);
      continue;
    }
    if (!isAdjacent)
      literals.emplace_back();
    for (++i; code[i] != '"'; ++i)
      literals.back() += code[i] == '\\' ? code[++i] : code[i];
    isAdjacent = true;
  }
  return literals;
}

TEST(FileTestCoverage, EveryReason) {
  // Substitutions are those that a caller registers, and a file test chooses neither the bytes of
  // its parameters nor the options of an explained pass: tests/unit/passes and passes/*.cgir have
  // these.
  const fs::path exempt = "substitution";
  const std::string unreachable[] = {"the argmax is over another number of rows",
                                     "attention is kept whole"};
  std::string explained;
  for (const auto &entry : fs::directory_iterator(kRoot / "passes"))
    if (entry.path().stem().string().ends_with("_explain"))
      explained += readFile(entry.path());
  size_t found = 0;
  for (const auto &entry : fs::recursive_directory_iterator(test::sourceDir() / "passes")) {
    if (entry.path().extension() != ".cpp" || entry.path().parent_path().filename() == exempt)
      continue;
    const std::string text = readFile(entry.path());
    for (const char *mark : {"notifyMatchFailure(", "reason = ", "refusal = "})
      for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1))
        for (const std::string &reason : literalsOf(llvm::StringRef(text).drop_front(at))) {
          ++found;
          EXPECT_TRUE(llvm::is_contained(unreachable, reason) ||
                      llvm::StringRef(explained).contains(reason))
              << "no tests/filetests/passes/*_explain.cgir has a candidate that "
              << entry.path().filename() << " declines with: " << reason;
        }
  }
  EXPECT_GT(found, 80u);
}

TEST(FileTestCoverage, EveryCause) {
  const std::pair<std::string, const char *> causes[] = {
#define CGC_CAUSE(Enum, id, why, fix) {id, fix},
#define CGC_OFFENDER(op, cause)
#include "ir/offenders.def"
  };
  for (const auto &[id, fix] : causes) {
    std::string file = id;
    std::replace(file.begin(), file.end(), '-', '_');
    const auto tests = testsOf(file, "offenders");
    EXPECT_TRUE(llvm::any_of(tests,
                             [&, fix = fix](const fs::path &test) {
                               const std::string text = readFile(test);
                               const auto output = runPipeline(test, text, pipelineOf(text));
                               return output && output->find(std::string("to do: ") + fix) !=
                                                    std::string::npos;
                             }))
        << "none of the tests/filetests/offenders/" << file << "*.cgir is refused with: " << fix;
  }
}

TEST(FileTestCoverage, EveryOffender) {
  const std::string text = readFile(kRoot / "offenders" / "every_op.cgir");
  for (const char *op : {
#define CGC_CAUSE(Enum, id, why, fix)
#define CGC_OFFENDER(op, cause) op,
#include "ir/offenders.def"
       })
    EXPECT_TRUE(llvm::StringRef(text).contains(std::string("; CHECK: cannot compile ") + op + ": "))
        << "tests/filetests/offenders/every_op.cgir has no line that says which cause " << op
        << " has";
}

} // namespace
} // namespace cgc

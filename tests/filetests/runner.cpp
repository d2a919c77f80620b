// Runner of the file tests: one gtest for each tests/filetests/**/*.cgir. docs/ir.md describes the
// files.
#include "backend/backend.h"
#include "ir/text/text.h"
#include "passes/batch_flow.h"
#include "passes/manager/pass_manager.h"
#include "runtime/plan/plan_file.h"
#include "tests/filetests/run_pipeline.h"
#include "tests/paths.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/FileCheck/FileCheck.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace cgc {
namespace {

constexpr llvm::StringLiteral kTestMark = "; test: ";
constexpr llvm::StringLiteral kErrorMark = "; error: ";
constexpr llvm::StringLiteral kExpectMark = "\n; EXPECT:\n";

// ---- Comparing output

/// Checks `output` against the `; CHECK` lines of `text`. Returns FileCheck's errors; empty if the
/// lines match.
std::string runFileCheck(llvm::StringRef text, llvm::StringRef output, const std::string &name) {
  llvm::FileCheckRequest request;
  request.CheckPrefixes = {"CHECK"};
  llvm::FileCheck check(request);
  std::string errors;
  llvm::SourceMgr sources;
  sources.setDiagHandler(
      [](const llvm::SMDiagnostic &diagnostic, void *context) {
        llvm::raw_string_ostream os(*static_cast<std::string *>(context));
        diagnostic.print("", os, /*ShowColors=*/false);
      },
      &errors);
  if (!check.ValidateCheckPrefixes())
    return "FileCheck refuses the prefix CHECK";
  auto addBuffer = [&](llvm::StringRef content, const std::string &bufferName,
                       llvm::SmallString<0> &storage) {
    auto raw = llvm::MemoryBuffer::getMemBufferCopy(content, bufferName);
    llvm::StringRef canonical = check.CanonicalizeFile(*raw, storage);
    sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(canonical, bufferName),
                               llvm::SMLoc());
    return canonical;
  };
  llvm::SmallString<0> checkStorage, inputStorage;
  if (check.readCheckFile(sources, addBuffer(text, name, checkStorage)))
    return errors.empty() ? "the CHECK lines cannot be read" : errors;
  if (!check.checkInput(sources, addBuffer(output, "output", inputStorage)))
    return errors.empty() ? "the CHECK lines do not match" : errors;
  return "";
}

/// Returns `output` as a block of comments.
std::string commented(llvm::StringRef output) {
  std::string text;
  llvm::SmallVector<llvm::StringRef> lines;
  output.rtrim('\n').split(lines, '\n');
  for (llvm::StringRef line : lines)
    text += line.empty() ? ";\n" : "; " + line.str() + "\n";
  return text;
}

/// Compares with the CHECK lines and the EXPECT block. With CGC_BLESS=1, rewrites the block
/// instead.
void compareOutput(const fs::path &path, llvm::StringRef text, llvm::StringRef output,
                   bool mayCheckNothing) {
  bool hasChecks = text.contains("; CHECK");
  auto [before, expected] = text.split(kExpectMark);
  bool hasBlock = text.contains(kExpectMark);
  if (hasChecks) {
    std::string errors = runFileCheck(before, output, path.filename().string());
    EXPECT_TRUE(errors.empty()) << errors << "The output is:\n" << output.str();
  }
  if (hasBlock && std::getenv("CGC_BLESS")) {
    std::ofstream(path, std::ios::binary) << before.str() << kExpectMark.str() << commented(output);
  } else if (hasBlock) {
    EXPECT_EQ(commented(output), expected.str())
        << "Run with CGC_BLESS=1 to accept what it is now.";
  }
  EXPECT_TRUE(hasChecks || hasBlock || mayCheckNothing)
      << "The file has no '; CHECK:' lines and no '; EXPECT:' block. The output is:\n"
      << output.str();
}

// ---- Kinds of test

void runRoundTrip(const fs::path &path, llvm::StringRef text) {
  ir::Diagnostics diagnostics;
  auto module = ir::parseModule(text, path.filename().string(), diagnostics);
  ASSERT_TRUE(module) << diagnostics.render();
  std::string once = ir::toString(*module);
  auto again = ir::parseModule(once, "printed", diagnostics);
  ASSERT_TRUE(again) << diagnostics.render() << once;
  EXPECT_EQ(ir::toString(*again), once);
  compareOutput(path, text, once, /*mayCheckNothing=*/true);
}

struct ExpectedError {
  size_t line;
  std::string text;
};

/// Returns a line without its comment and blanks.
llvm::StringRef code(llvm::StringRef line) {
  return line.split(';').first.trim();
}

/// Returns the expected errors of a file. A mark on a line of its own refers to the next line with
/// code.
std::vector<ExpectedError> expectedErrors(llvm::ArrayRef<llvm::StringRef> lines) {
  std::vector<ExpectedError> expected;
  for (size_t i = 0; i < lines.size(); ++i) {
    size_t mark = lines[i].find(kErrorMark);
    if (mark == llvm::StringRef::npos)
      continue;
    size_t about = i;
    while (about + 1 < lines.size() && code(lines[about]).empty())
      ++about;
    expected.push_back({about + 1, lines[i].drop_front(mark + kErrorMark.size()).trim().str()});
  }
  return expected;
}

void runVerify(const fs::path &path, llvm::StringRef text) {
  ir::Diagnostics diagnostics;
  ir::parseAndVerify(text, path.filename().string(), diagnostics);
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n');
  std::vector<ExpectedError> expected = expectedErrors(lines);
  for (const ir::Diagnostic &error : diagnostics.errors()) {
    auto found = llvm::find_if(expected, [&](const ExpectedError &e) {
      return e.line == error.line && llvm::StringRef(error.message).contains(e.text);
    });
    if (found != expected.end())
      expected.erase(found);
    else
      ADD_FAILURE() << "line " << error.line
                    << " has an error that is not expected: " << error.message;
  }
  for (const ExpectedError &missing : expected)
    ADD_FAILURE() << "line " << missing.line << " should have an error: " << missing.text;
}

void runPasses(const fs::path &path, llvm::StringRef text, llvm::StringRef pipeline) {
  if (const auto output = runPipeline(path, text, pipeline))
    compareOutput(path, text, *output, /*mayCheckNothing=*/false);
}

void runExplain(const fs::path &path, llvm::StringRef text, llvm::StringRef pass) {
  if (const auto output = explainPass(path, text, pass))
    compareOutput(path, text, *output, /*mayCheckNothing=*/false);
}

void runLower(const fs::path &path, llvm::StringRef text) {
  auto module = compilable(text, path);
  if (!module)
    return;
  std::vector<backend::EntryBucket> buckets;
  for (const auto &graph : module->graphs())
    buckets.push_back({graph->name(), graph.get()});
  ir::Diagnostics diagnostics;
  auto compiled = backend::lower(buckets, DeviceKind::Cpu, diagnostics);
  std::string output = compiled ? toText(compiled->plan) : "failed: " + compiled.status().message();
  compareOutput(path, text, output, /*mayCheckNothing=*/false);
}

/// Prints how each value depends on the rows of a batch of this size: of every input, the first
/// dimension of the size is the batch.
void runBatch(const fs::path &path, llvm::StringRef text, llvm::StringRef size) {
  int64_t batch = 0;
  ASSERT_FALSE(size.getAsInteger(10, batch)) << path << ": batch=" << size.str();
  const auto module = parsedAndVerified(text, path.filename().string());
  if (!module)
    return;
  std::string output;
  for (const auto &graph : module->graphs()) {
    std::vector<std::optional<int64_t>> dims;
    for (const ir::Value *input : graph->inputs()) {
      const ir::Dims &sizes = input->tensor().sizes;
      const auto *const dim = llvm::find(sizes, batch);
      dims.push_back(dim == sizes.end() ? std::nullopt : std::optional(dim - sizes.begin()));
    }
    const passes::BatchFlow flow(*graph, dims, batch);
    output += "@" + graph->name() + "\n";
    for (const ir::Node &node : *graph)
      for (const ir::Value &value : node.results()) {
        output += "%" + value.name() + ": " + toString(flow.state(value));
        if (const ir::Node *spoiler = flow.spoiler(value))
          output += " by " + ir::opName(spoiler->op()).str() + " %" + spoiler->result()->name();
        output += "\n";
      }
  }
  compareOutput(path, text, output, /*mayCheckNothing=*/false);
}

class FileTest : public testing::Test {
public:
  explicit FileTest(fs::path path) : path_(std::move(path)) {}

  void TestBody() override {
    std::string text = readFile(path_);
    llvm::StringRef what = llvm::StringRef(text).split('\n').first.trim();
    ASSERT_TRUE(what.consume_front(kTestMark))
        << path_ << ": the first line has to say what runs, as in '; test: roundtrip'";
    if (what == "roundtrip")
      runRoundTrip(path_, text);
    else if (what == "verify")
      runVerify(path_, text);
    else if (what.consume_front("passes="))
      runPasses(path_, text, what);
    else if (what.consume_front("explain="))
      runExplain(path_, text, what);
    else if (what == "lower")
      runLower(path_, text);
    else if (what.consume_front("batch="))
      runBatch(path_, text, what);
    else
      FAIL() << path_ << ": no kind of test '" << what.str()
             << "'; there are roundtrip, verify, passes=..., explain=..., lower and "
                "batch=...";
  }

private:
  fs::path path_;
};

const fs::path kFileTests = test::sourceDir() / "tests" / "filetests";

} // namespace

/// Registers the tests in the order of their paths.
void registerFileTests() {
  std::vector<fs::path> paths;
  for (const auto &entry : fs::recursive_directory_iterator(kFileTests))
    if (entry.path().extension() == ".cgir")
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const fs::path &path : paths) {
    std::string name = fs::relative(path, kFileTests).replace_extension("").string();
    testing::RegisterTest("FileTest", name.c_str(), nullptr, nullptr, path.c_str(), 1,
                          [path]() -> FileTest * { return new FileTest(path); });
  }
}

} // namespace cgc

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  cgc::registerFileTests();
  return RUN_ALL_TESTS();
}

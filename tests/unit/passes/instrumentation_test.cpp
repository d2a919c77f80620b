// Instrumentation: callbacks, printing, dumping, timing and checking around passes.
#include "passes/manager/instrumentation.h"

#include "tests/temp_folder.h"
#include "tests/unit/passes/passes_test_util.h"

#include "gmock/gmock.h"

#include <filesystem>
#include <fstream>
#include <sstream>

namespace cgc::passes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char *kTracedText = R"(
graph @g(%x: f32[2]) {
  %0 = aten.exp(%x) : f32[2]
  %1 = aten.exp(%x) : f32[2]
  %2 = aten.neg(%x) : f32[2]
  output %0, %1
})";

struct Log {
  std::string text;
  llvm::raw_string_ostream stream{text};
};

Instrumentation standard(const InstrumentationOptions &options, llvm::raw_ostream &log) {
  auto made = makeInstrumentation(options, log);
  EXPECT_TRUE(made) << made.status().message();
  return *made;
}

TEST(InstrumentationTest, CallbacksNestAroundEachPass) {
  std::vector<std::string> calls;
  Instrumentation instrumentation;
  for (std::string name : {"outer", "inner"})
    instrumentation.add({.before =
                             [&calls, name](const PassRun &run) {
                               calls.push_back(name + " before " + std::string(run.pass));
                             },
                         .after =
                             [&calls, name](const PassRun &run, Changed changed) {
                               calls.push_back(
                                   name + (changed == Changed::Yes ? " changed by " : " kept by ") +
                                   std::string(run.pass));
                               return Status::ok();
                             },
                         .finish = {}});
  auto module = parse(kTracedText);
  ASSERT_TRUE(runPasses(*module, "cse,cse", {}, instrumentation).isOk());
  EXPECT_THAT(calls, ElementsAre("outer before cse", "inner before cse", "inner changed by cse",
                                 "outer changed by cse", "outer before cse", "inner before cse",
                                 "inner kept by cse", "outer kept by cse"));
}

TEST(InstrumentationTest, ACallbackCanStopThePipeline) {
  Instrumentation instrumentation;
  instrumentation.add(
      {.before = {},
       .after = [](const PassRun &, Changed) { return Status(Code::Failed, "stop"); },
       .finish = {}});
  auto module = parse(kTracedText);
  Status status = runPasses(*module, "cse,dce", {}, instrumentation);
  EXPECT_EQ(status.message(), "stop");
  EXPECT_THAT(ir::toString(*module), HasSubstr("aten.neg")) << "dce has run";
}

TEST(InstrumentationTest, PrintAfterOnePass) {
  Log log;
  auto module = parse(kTracedText);
  ASSERT_TRUE(
      runPasses(*module, "cse,dce", {}, standard({.printAfter = {"cse"}}, log.stream)).isOk());
  EXPECT_THAT(log.text, HasSubstr("; after cse on @g\n"));
  EXPECT_THAT(log.text, HasSubstr("aten.neg"));
  EXPECT_THAT(log.text, Not(HasSubstr("after dce")));
}

TEST(InstrumentationTest, PrintAfterAll) {
  Log log;
  auto module = parse(kTracedText);
  ASSERT_TRUE(
      runPasses(*module, "inline,cse,dce", {}, standard({.printAfterAll = true}, log.stream))
          .isOk());
  for (const char *pass : {"after inline\n", "after cse on @g\n", "after dce on @g\n"})
    EXPECT_THAT(log.text, HasSubstr(pass));
}

TEST(InstrumentationTest, PrintAfterUnknownPassIsAUsageError) {
  auto made = makeInstrumentation({.printAfter = {"inlin"}}, llvm::nulls());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.status().code(), Code::Usage);
  EXPECT_THAT(made.status().message(), HasSubstr("did you mean 'inline'?"));
}

TEST(InstrumentationTest, DumpsAreNumberedByPositionAndParseBack) {
  test::TempFolder temporary;
  const std::filesystem::path folder = temporary / "dump";
  auto module = parse(kTracedText);
  ASSERT_TRUE(runPasses(*module, "inline,cse,dce", {},
                        standard({.dumpDir = folder.string()}, llvm::nulls()))
                  .isOk());
  std::vector<std::string> names;
  for (auto &entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  EXPECT_THAT(names,
              ::testing::UnorderedElementsAre("01-inline.cgir", "02-cse.g.cgir", "02-cse.g.dot",
                                              "03-dce.g.cgir", "03-dce.g.dot"));
  std::ostringstream text;
  text << std::ifstream(folder / "03-dce.g.cgir").rdbuf();
  EXPECT_EQ(ir::toString(*parse(text.str())->findGraph("g")),
            ir::toString(*module->findGraph("g")));
}

TEST(InstrumentationTest, DumpFolderThatCannotBeMadeFails) {
  auto module = parse(kTracedText);
  Status status =
      runPasses(*module, "cse", {}, standard({.dumpDir = "/dev/null/dumps"}, llvm::nulls()));
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(), HasSubstr("/dev/null/dumps"));
}

TEST(InstrumentationTest, TimesAreATableAtTheEnd) {
  Log log;
  Instrumentation instrumentation = standard({.timePasses = true}, log.stream);
  auto module = parse(kTracedText);
  ASSERT_TRUE(runPasses(*module, "cse,dce,cse", {}, instrumentation).isOk());
  EXPECT_EQ(log.text, "");
  instrumentation.finish();
  EXPECT_THAT(log.text, HasSubstr("ms      %  runs  changed  pass\n"));
  EXPECT_THAT(log.text, HasSubstr("     2        1  cse\n"));
  EXPECT_THAT(log.text, HasSubstr("     1        1  dce\n"));
  EXPECT_THAT(log.text, HasSubstr("100.0     3        2  all\n"));
}

TEST(InstrumentationTest, PrintChangedShowsTheLinesThatChanged) {
  Log log;
  auto module = parse(kTracedText);
  ASSERT_TRUE(
      runPasses(*module, "cse,cse", {}, standard({.printChanged = true}, log.stream)).isOk());
  EXPECT_EQ(log.text, "; cse on @g:\n"
                      "  ...\n"
                      "   %0 = aten.exp(%x) : f32[2]\n"
                      "-  %1 = aten.exp(%x) : f32[2]\n"
                      "   %2 = aten.neg(%x) : f32[2]\n"
                      "-  output %0, %1\n"
                      "+  output %0, %0\n"
                      " }\n"
                      "; cse on @g: no change\n");
}

TEST(InstrumentationTest, PassLimitLeavesOutRunsThatAreNotRequired) {
  Log log;
  auto module = parse(kTracedText);
  ASSERT_TRUE(
      runPasses(*module, "inline,cse,canonicalize,dce", {}, standard({.passLimit = 1}, log.stream))
          .isOk());
  EXPECT_EQ(log.text, "pass run 1: inline\n"
                      "pass run 2: cse on @g, left out\n"
                      "pass run 3: canonicalize on @g, required\n"
                      "pass run 4: dce on @g, left out\n");
  EXPECT_THAT(ir::toString(*module), HasSubstr("%1 = aten.exp")) << "cse has run";
}

TEST(InstrumentationTest, CallbacksOfAPassThatIsLeftOutAreNotCalled) {
  Instrumentation instrumentation;
  unsigned calls = 0;
  instrumentation.add({.before = [&](const PassRun &) { ++calls; },
                       .after =
                           [&](const PassRun &, Changed) {
                             ++calls;
                             return Status::ok();
                           }});
  instrumentation.add({.shouldRun = [](const PassRun &run) { return run.pass != "cse"; }});
  auto module = parse(kTracedText);
  ASSERT_TRUE(runPasses(*module, "cse", {}, instrumentation).isOk());
  EXPECT_EQ(calls, 0u);
}

TEST(InstrumentationTest, APassThatBreaksTheIrIsNamed) {
  Substitutions substitutions = misbehaving([](ir::Node &neg) -> Result<ir::Value *> {
    ir::Graph &graph = *neg.graph(); // Before the placeholder.
    graph.getAttr("nowhere", neg.result()->type(), neg.loc(), &*graph.begin());
    return nullptr;
  });
  auto module = parse(kTracedText);
  Status status = runPasses(*module, "op-substitution", {.substitutions = &substitutions},
                            standard({}, llvm::nulls()));
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(), HasSubstr("pass 'op-substitution' broke the IR"));
}

TEST(InstrumentationTest, VerifyEachCanBeTurnedOff) {
  Substitutions substitutions = misbehaving([](ir::Node &neg) -> Result<ir::Value *> {
    neg.result()->setType(ir::TensorType::dense(DType::F32, {3}));
    return nullptr;
  });
  PassContext context{.substitutions = &substitutions};
  auto module = parse(kTracedText);
  EXPECT_TRUE(
      runPasses(*module, "op-substitution", context, standard({.verifyEach = false}, llvm::nulls()))
          .isOk());
  module = parse(kTracedText);
  Status status = runPasses(*module, "op-substitution", context, standard({}, llvm::nulls()));
  EXPECT_THAT(status.message(), HasSubstr("pass 'op-substitution' broke the IR"));
}

TEST(InstrumentationTest, APassThatThrowsIsNamed) {
  Substitutions substitutions =
      misbehaving([](ir::Node &) -> Result<ir::Value *> { throw std::runtime_error("ouch"); });
  auto module = parse(kTracedText);
  Status status = runPasses(*module, "op-substitution", {.substitutions = &substitutions});
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(), HasSubstr("pass 'op-substitution'"));
  EXPECT_THAT(status.message(), HasSubstr("ouch"));
}

TEST(InstrumentationTest, ExplainsOnePassAtItsFixedPoint) {
  Log log;
  auto module = parse(R"(
graph @g(%x: f32[2,3]) {
  %0 = aten.clone(%x) : f32[2,3]
  %1 = aten.permute(%0) {dims=[1, 0]} : f32[3,2][1,3]
  %2 = aten.contiguous(%1) : f32[3,2] loc("model.py":4 "head")
  output %2
})");
  const Instrumentation instrumentation = standard({.explain = "canonicalize"}, log.stream);
  ASSERT_TRUE(runPasses(*module, "canonicalize,cse", {}, instrumentation).isOk());
  instrumentation.finish();
  EXPECT_EQ(log.text, "; canonicalize on @g\n"
                      "model.py:4: remark: dropCopy: the result would be f32[3,2][1,3], and the "
                      "graph returns it\n"
                      "  %2 = aten.contiguous(%4) : f32[3,2]\n"
                      "  in module 'head'\n"
                      "canonicalize: 1 candidate does not match\n");
}

TEST(InstrumentationTest, ExplainsOnlyPassesWithPatterns) {
  Log log;
  const auto status = makeInstrumentation({.explain = "dce"}, log.stream).status();
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_THAT(status.message(),
              HasSubstr("pass 'dce' has no patterns to explain; these have: "
                        "canonicalize, simplify-gradients, select-gradients, select-updates, "
                        "select-train-norm, op-substitution, fuse-batch-norm, fold-batch-norm"));
}

} // namespace
} // namespace cgc::passes

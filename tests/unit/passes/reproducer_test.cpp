// Reproducers: the file that a failure leaves, and that it reproduces the failure.
#include "passes/manager/reproducer.h"

#include "tests/temp_folder.h"
#include "tests/unit/passes/passes_test_util.h"

#include "gmock/gmock.h"

#include <filesystem>

namespace cgc::passes {
namespace {

using ::testing::HasSubstr;

class ReproducerTest : public ::testing::Test {
protected:
  std::string path() const { return std::filesystem::path(folder_ / "crash.cgir").string(); }
  std::string text() const { return test::readFile(path()); }
  Status run(ir::Module &module, llvm::StringRef pipeline, PassContext context = {}) {
    Instrumentation instrumentation;
    auto callbacks = writeReproducer(
        path(), {DeviceKind::Cuda, "cgc 1.2.3", {{"/a folder/libacme.so", 0x0123456789abcdef}}});
    CGC_TRY(callbacks.status());
    instrumentation.add(*std::move(callbacks));
    Status status = runPasses(module, pipeline, context, instrumentation);
    instrumentation.finish();
    return status;
  }

private:
  test::TempFolder folder_;
};

constexpr const char *kText = R"(
module @Root class="Root" {
  param @w : f32[2]
  graph @f(%x: f32[2]) -> f32[2] {
    %0 = aten.mul(%x, 1) : f32[2]
    output %0
  }
  graph @g(%x: f32[2]) -> f32[2] {
    %w = get_attr @w : f32[2]
    %0 = aten.neg(%x) : f32[2]
    %1 = aten.mul(%0, %w) : f32[2]
    %2 = aten.mul(%1, 1) : f32[2]
    output %2
  }
})";

/// Fails at a neg, with a message of two lines.
Substitutions refuseNeg() {
  return misbehaving(
      [](ir::Node &) -> Result<ir::Value *> { return Status(Code::Failed, "no negation\ntoday"); });
}

TEST_F(ReproducerTest, HoldsWhatTheFailingPassRanOnAndHowToRunItAgain) {
  const Substitutions substitutions = refuseNeg();
  const PassContext context{.substitutions = &substitutions};
  auto module = parse(kText);
  const Status status =
      run(*module, "inline,canonicalize{max-rewrites=9},op-substitution,fold{limit=1}", context);
  EXPECT_EQ(status.message(),
            "pass 'op-substitution': substitution 'test' at %0 = aten.neg(%x) : f32[2]: no "
            "negation\ntoday");
  auto reproducer = parseReproducer(text(), path());
  ASSERT_TRUE(reproducer) << reproducer.status().message();
  EXPECT_EQ(reproducer->pipeline, "op-substitution,fold{limit=1}");
  EXPECT_EQ(reproducer->origin.target, DeviceKind::Cuda);
  EXPECT_EQ(reproducer->origin.producer, "cgc 1.2.3");
  ASSERT_EQ(reproducer->origin.plugins.size(), 1u);
  EXPECT_EQ(reproducer->origin.plugins[0].path, "/a folder/libacme.so");
  EXPECT_EQ(reproducer->origin.plugins[0].hash, 0x0123456789abcdefu);
  EXPECT_THAT(text(), HasSubstr(": no negation\n;   today\n"));
  // The graph before the failing pass, after canonicalize.
  auto again = parse(text());
  EXPECT_FALSE(again->findGraph("f"));
  ASSERT_TRUE(again->findGraph("g"));
  EXPECT_THAT(text(), ::testing::Not(HasSubstr("aten.mul(%1, 1)")));
  EXPECT_EQ(runPasses(*again, reproducer->pipeline, context).message(), status.message());
}

TEST_F(ReproducerTest, IsThereWhileAPassRunsForItMayCrash) {
  bool wasThere = false;
  const Substitutions substitutions = misbehaving([&](ir::Node &) -> Result<ir::Value *> {
    wasThere = std::filesystem::exists(path());
    return nullptr;
  });
  auto module = parse(kText);
  EXPECT_TRUE(run(*module, "op-substitution", {.substitutions = &substitutions}).isOk());
  EXPECT_TRUE(wasThere);
  EXPECT_FALSE(std::filesystem::exists(path())) << "it stays although nothing failed";
}

TEST_F(ReproducerTest, APassThatBreaksTheIrLeavesOne) {
  const Substitutions substitutions = misbehaving([](ir::Node &neg) -> Result<ir::Value *> {
    neg.result()->setType(ir::TensorType::dense(DType::F32, {3}));
    return nullptr;
  });
  auto instrumentation = makeInstrumentation({.crashReproducer = path()}, llvm::nulls());
  ASSERT_TRUE(instrumentation);
  auto module = parse(kText);
  EXPECT_FALSE(
      runPasses(*module, "op-substitution", {.substitutions = &substitutions}, *instrumentation)
          .isOk());
  instrumentation->finish();
  EXPECT_THAT(text(), HasSubstr("broke the IR"));
  EXPECT_THAT(text(), HasSubstr("\n    %0 = aten.neg(%x) : f32[2]\n"))
      << "it has the IR after the pass";
}

TEST_F(ReproducerTest, TheFirstOfSeveralFailuresStays) {
  // As in cgc compile, which tries every entry.
  const Substitutions substitutions = refuseNeg();
  const PassContext context{.substitutions = &substitutions};
  Instrumentation instrumentation;
  instrumentation.add(*writeReproducer(path(), {}));
  auto first = parse(kText);
  auto second = parse("graph @h(%x: f32[2]) {\n  %0 = aten.neg(%x) : f32[2]\n  output %0\n}");
  EXPECT_FALSE(runPasses(*first, "op-substitution", context, instrumentation).isOk());
  EXPECT_FALSE(runPasses(*second, "op-substitution", context, instrumentation).isOk());
  instrumentation.finish();
  EXPECT_THAT(text(), HasSubstr("graph @g("));
  EXPECT_THAT(text(), ::testing::Not(HasSubstr("graph @h(")));
}

TEST_F(ReproducerTest, ARefusalGivesWayToAFailure) {
  const auto refuse = [](Code code) {
    return misbehaving(
        [code](ir::Node &) -> Result<ir::Value *> { return Status(code, "no negation"); });
  };
  const Substitutions refusal = refuse(Code::Unsupported), failure = refuse(Code::Failed);
  const auto after = [&](llvm::ArrayRef<const Substitutions *> runs) {
    Instrumentation instrumentation;
    auto reproducer = writeReproducer(path(), {});
    EXPECT_TRUE(reproducer);
    instrumentation.add(*std::move(reproducer));
    for (size_t i = 0; i < runs.size(); ++i) {
      auto module = parse("graph @g" + std::to_string(i) +
                          "(%x: f32[2]) {\n  %0 = aten.neg(%x) : f32[2]\n  output %0\n}");
      (void)runPasses(*module, "op-substitution", {.substitutions = runs[i]}, instrumentation);
    }
    instrumentation.finish();
    return std::filesystem::exists(path()) ? text() : "none";
  };
  const Substitutions nothing;
  EXPECT_THAT(after({&refusal, &failure, &failure}), HasSubstr("graph @g1("));
  EXPECT_THAT(after({&failure, &refusal}), HasSubstr("graph @g0("));
  EXPECT_THAT(after({&refusal, &refusal, &nothing}), HasSubstr("graph @g0("));
  EXPECT_EQ(after({&nothing}), "none");
}

TEST_F(ReproducerTest, OneOfARunBeforeGoesWhenTheFirstPassBegins) {
  const Substitutions substitutions = refuseNeg();
  const PassContext context{.substitutions = &substitutions};
  auto module = parse(kText);
  EXPECT_FALSE(run(*module, "op-substitution", context).isOk());
  const std::string old = text();
  auto graphless = parse("module @Root class=\"Root\" {\n}");
  EXPECT_TRUE(run(*graphless, "cse", context).isOk()) << "no pass runs";
  EXPECT_EQ(text(), old);
  EXPECT_TRUE(run(*module, "cse", context).isOk());
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(ReproducerTest, AnotherFileOfThatNameIsNotTouched) {
  auto module = parse(kText);
  for (const std::string &other :
       {std::string(), std::string("old"), std::string("; cgc reproducer; of mine\n"),
        std::string(200, 'x')}) {
    test::writeFile(path(), other);
    const Status status = run(*module, "cse");
    EXPECT_EQ(status.code(), Code::Usage);
    EXPECT_THAT(status.message(), HasSubstr("crash.cgir' is no reproducer"));
    EXPECT_EQ(text(), other);
  }
}

TEST_F(ReproducerTest, OtherTextIsRefused) {
  EXPECT_EQ(parseReproducer("graph @f() {}", "f.cgir").status().code(), Code::InvalidFile);
  auto module = parse(kText);
  const Substitutions substitutions = refuseNeg();
  EXPECT_FALSE(run(*module, "op-substitution", {.substitutions = &substitutions}).isOk());
  std::string broken = text();
  broken.replace(broken.find("target: cuda"), 12, "target: moon");
  EXPECT_THAT(parseReproducer(broken, "b.cgir").status().message(), HasSubstr("no target 'moon'"));
  std::string plugin = text();
  plugin.replace(plugin.find("0123456789abcdef"), 4, "what");
  EXPECT_THAT(parseReproducer(plugin, "b.cgir").status().message(), HasSubstr("got 'what4567"));
  broken.erase(broken.find("; target"), 15);
  EXPECT_THAT(parseReproducer(broken, "b.cgir").status().message(), HasSubstr("without a line"));
}

} // namespace
} // namespace cgc::passes

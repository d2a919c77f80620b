// Op substitution: a registered pattern is replaced where it matches, and other nodes stay.
#include "tests/unit/passes/substitution_test_util.h"

namespace cgc::passes {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Runs op-substitution and dce on a graph of f32[2] values, and returns its text.
Result<std::string> substitute(const OpSubstitution &substitution, const std::string &body) {
  Substitutions substitutions{.modules = {}, .ops = {substitution}};
  auto module = parse("graph @g(%x: f32[2], %y: f32[2]) {\n" + body + "\n}");
  CGC_TRY(runPasses(*module, "op-substitution,dce", {.substitutions = &substitutions}));
  return ir::toString(*module->graphs()[0]);
}

/// Like substitute, for a run that must succeed.
std::string substituted(const OpSubstitution &substitution, const std::string &body) {
  const auto graph = substitute(substitution, body);
  EXPECT_TRUE(graph) << graph.status().message();
  return graph ? *graph : "";
}

/// Returns a graph of one call.
std::string graphOf(const std::string &call, const std::string &inputs = "%x: dynamic") {
  return "graph @g(" + inputs + ") {\n  %0 = " + call + " : dynamic\n  output %0\n}";
}

const OpSubstitution kQuickGelu = {.name = "quick-gelu",
                                   .pattern = R"(
graph @p(%x: dynamic) {
  %0 = aten.mul(%x, 1.702) : dynamic
  %1 = aten.sigmoid(%0) : dynamic
  %2 = aten.mul(%x, %1) : dynamic
  output %2
})",
                                   .replacement = R"(
graph @r(%x: dynamic) {
  %0 = cgc.quick_gelu(%x) : dynamic
  output %0
})"};

/// A body that kQuickGelu's pattern matches.
const std::string kFits = R"(
  %0 = aten.mul(%x, 1.702) : f32[2]
  %1 = aten.sigmoid(%0) : f32[2]
  %2 = aten.mul(%x, %1) : f32[2]
  output %2)";

TEST(OpSubstitutionTest, APatternBecomesItsReplacement) {
  EXPECT_EQ(substituted(kQuickGelu, R"(
  %0 = aten.mul(%x, 1.702) : f32[2] loc("m.py":7 "act")
  %1 = aten.sigmoid(%0) : f32[2] loc("m.py":7 "act")
  %2 = aten.mul(%x, %1) : f32[2] loc("m.py":8 "act")
  %3 = aten.exp(%2) : f32[2]
  output %3, %2)"),
            R"(graph @g(%x: f32[2], %y: f32[2]) -> (f32[2], f32[2]) {
  %4 = cgc.quick_gelu(%x) : f32[2] loc("m.py":8 "act")
  %3 = aten.exp(%4) : f32[2]
  output %3, %4
}
)");
}

TEST(OpSubstitutionTest, WhatDoesNotFitStays) {
  const std::string slope = R"(
  %0 = aten.mul(%x, 1.5) : f32[2]
  %1 = aten.sigmoid(%0) : f32[2]
  %2 = aten.mul(%x, %1) : f32[2]
  output %2)";
  EXPECT_THAT(substituted(kQuickGelu, slope), Not(HasSubstr("quick_gelu")));
  const std::string otherInput = R"(
  %0 = aten.mul(%x, 1.702) : f32[2]
  %1 = aten.sigmoid(%0) : f32[2]
  %2 = aten.mul(%y, %1) : f32[2]
  output %2)";
  EXPECT_THAT(substituted(kQuickGelu, otherInput), Not(HasSubstr("quick_gelu")));
  EXPECT_THAT(substituted(kQuickGelu, kFits), HasSubstr("quick_gelu"));
  for (const std::string type : {"f32[2]", "f16[2]", "f32[3]"}) {
    OpSubstitution typed = kQuickGelu;
    typed.pattern.replace(typed.pattern.find("%x: dynamic"), 11, "%x: " + type);
    typed.pattern.replace(typed.pattern.find("dynamic"), 7, type);
    EXPECT_EQ(llvm::StringRef(substituted(typed, kFits)).contains("quick_gelu"), type == "f32[2]")
        << type;
  }
}

TEST(OpSubstitutionTest, WhichResultIsReadMatters) {
  const OpSubstitution second = {.name = "second",
                                 .pattern = R"(
graph @p(%x: dynamic) {
  %0, %1 = aten.chunk(%x) {chunks=2} : dynamic, dynamic
  %2 = aten.exp(%1) : dynamic
  output %2
})",
                                 .replacement = R"(
graph @r(%x: dynamic) {
  %0, %1 = aten.chunk(%x) {chunks=2} : dynamic, dynamic
  %2 = aten.neg(%1) : dynamic
  output %2
})"};
  for (const std::string read : {"%0", "%1"})
    EXPECT_EQ(llvm::StringRef(substituted(second, R"(
  %0, %1 = aten.chunk(%x) {chunks=2} : f32[1], f32[1]
  %2 = aten.exp()" + read + R"() : f32[1]
  output %2)"))
                  .contains("aten.neg"),
              read == "%1")
        << read;
}

TEST(OpSubstitutionTest, WhatOthersReadStays) {
  EXPECT_THAT(substituted(kQuickGelu, R"(
  %0 = aten.mul(%x, 1.702) : f32[2]
  %1 = aten.sigmoid(%0) : f32[2]
  %2 = aten.mul(%x, %1) : f32[2]
  output %2, %1)"),
              AllOf(HasSubstr("cgc.quick_gelu(%x)"), HasSubstr("%1 = aten.sigmoid(%0)")));
}

/// Merges mul(mul(x, a), b) with constants, using a function as the replacement.
OpSubstitution mergeFactors() {
  return {.name = "merge",
          .pattern = R"(
graph @p(%x: dynamic, %a: dynamic, %b: dynamic) {
  %0 = aten.mul(%x, %a) : dynamic
  %1 = aten.mul(%0, %b) : dynamic
  output %1
})",
          .replace = [](const OpMatch &match, ir::GraphRewriter &rewriter) -> Result<ir::Value *> {
            auto a = match["a"].asNumber(), b = match["b"].asNumber();
            if (!a || !b)
              return nullptr;
            CGC_ASSIGN_OR_RETURN(ir::Node * merged,
                                 rewriter.tryCreate(ir::OpKind::Mul, {match["x"], *a * *b},
                                                    match.root, &match.root));
            return merged->result();
          }};
}

TEST(OpSubstitutionTest, AFunctionSeesTheConstantsAndMayDecline) {
  auto module = parse(kModel);
  PipelineBuilder builder;
  builder.registerOpSubstitution(mergeFactors());
  auto graph = compileModel(*module, builder);
  ASSERT_TRUE(graph) << graph.status().message();
  EXPECT_THAT(ir::toString(**graph), HasSubstr(", 6.0)"));
  EXPECT_THAT(opsOf(**graph), ElementsAre("aten.relu", "aten.relu", "aten.mul"));
  EXPECT_THAT(substituted(mergeFactors(), R"(
  %0 = aten.mul(%x, %y) : f32[2]
  %1 = aten.mul(%0, 2.0) : f32[2]
  output %1)"),
              HasSubstr("%1 = aten.mul(%0, 2.0)"));
}

/// Returns the error of replacing kFits with `call`.
Status refusalOf(const std::string &call) {
  OpSubstitution substitution = kQuickGelu;
  substitution.replacement = graphOf(call);
  return substitute(substitution, kFits).status();
}

TEST(OpSubstitutionTest, AnotherTypeIsRefusedWithBoth) {
  EXPECT_EQ(refusalOf("aten.sum(%x)").message(),
            "pass 'op-substitution': substitution 'quick-gelu' at %2 = aten.mul(%x, %1) : f32[2]: "
            "gives f32[], and what it replaces gives f32[2]; make it give the same");
  EXPECT_THAT(refusalOf("aten.to(%x) {dtype=f16}"),
              refuses(Code::Failed, anotherType("f16[2]", "f32[2]")));
}

TEST(OpSubstitutionTest, AReplacementWhoseOpRefusesIsNamed) {
  EXPECT_THAT(refusalOf("aten.bitwise_not(%x)"),
              refuses(Code::Failed, "substitution 'quick-gelu' at %2",
                      "the replacement's aten.bitwise_not refuses: expected 'self'"));
}

TEST(OpSubstitutionTest, ALiarIsCaught) {
  OpSubstitution liar = kQuickGelu;
  liar.replacement.clear();
  liar.replace = [](const OpMatch &match, ir::GraphRewriter &rewriter) -> Result<ir::Value *> {
    rewriter.create(ir::OpKind::Exp, {match["x"]}, match.root, &match.root);
    return nullptr;
  };
  EXPECT_THAT(substitute(liar, kFits).status(),
              refuses(Code::Failed, "changed the graph and says that it did not"));
}

/// Returns the error of building a pipeline with these texts.
Status refusal(const std::string &pattern, const std::string &replacement) {
  PipelineBuilder builder;
  builder.registerOpSubstitution({.name = "s", .pattern = pattern, .replacement = replacement});
  return builder.build().status();
}

TEST(OpSubstitutionTest, TextsThatCannotBeUsedAreRefusedWhenThePipelineIsBuilt) {
  const std::string exp = graphOf("aten.exp(%x)");
  EXPECT_THAT(
      refusal(exp, graphOf("aten.exp(%y)", "%y: dynamic")),
      refuses(Code::Failed, "the replacement of substitution 's': the pattern has no input '%y'"));
  EXPECT_THAT(refusal(exp, ""), refuses(Code::Failed, "needs a replacement: a text or a function"));
  EXPECT_THAT(refusal(graphOf("aten.exq(%x)"), exp),
              refuses(Code::Failed, "the pattern of substitution 's'", "aten.exq",
                      "did you mean 'aten.eq'"));
  const std::pair<std::string, const char *> patterns[] = {
      {"graph @p(%x: dynamic) {\n  output %x\n}", "expected every call to lead to the output"},
      {"graph @p(%x: dynamic) {\n  %0 = aten.exp(%x) : dynamic\n  %1 = aten.neg(%x) : dynamic\n  "
       "output %1\n}",
       "expected every call to lead to the output"},
      {graphOf("aten.exp(%x)", "%x: dynamic, %y: dynamic"), "nothing reads input '%y'"},
      {"graph @p(%x: dynamic) {\n  %0 = aten.exp(%x) : dynamic\n  output %0, %0\n}",
       "expected one output, a value"},
      {graphOf("aten.relu_(%x)"), "calls of ops that are not in place"},
      {exp + "\n" + exp, "'g'"},
  };
  for (const auto &[pattern, says] : patterns)
    EXPECT_THAT(refusal(pattern, exp), refuses(Code::Failed, says)) << pattern;
}

TEST(OpSubstitutionTest, ExplainsWhatDiffersFromThePattern) {
  Substitutions substitutions{.modules = {}, .ops = {kQuickGelu}};
  auto module = parse(R"(
graph @g(%x: f32[2], %y: f32[2]) {
  %0 = aten.mul(%x, 1.5) : f32[2]
  %1 = aten.sigmoid(%0) : f32[2]
  %2 = aten.mul(%x, %1) : f32[2] loc("m.py":8 "act")
  output %2
})");
  std::vector<std::string> failures;
  Instrumentation instrumentation;
  instrumentation.explain("op-substitution", [&](const MatchFailure &failure) {
    failures.push_back(failure.pattern + ": " + failure.node + ": " + failure.reason);
  });
  ASSERT_TRUE(
      runPasses(*module, "op-substitution,dce", {.substitutions = &substitutions}, instrumentation)
          .isOk());
  EXPECT_THAT(failures, ElementsAre(AllOf(HasSubstr("quick-gelu: %0 = aten.mul(%x, 1.5)"),
                                          HasSubstr("the pattern has %1 = aten.sigmoid(%0)")),
                                    AllOf(HasSubstr("quick-gelu: %2 = aten.mul(%x, %1)"),
                                          HasSubstr("the pattern has 1.702, and the graph 1.5"))));
}

} // namespace
} // namespace cgc::passes

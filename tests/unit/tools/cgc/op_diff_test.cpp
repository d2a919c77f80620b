// Tests of the op diff: ops correspond by what they compute, not by their names.
#include "tools/cgc/diff/op_diff.h"

#include "ir/text/text.h"
#include "tools/cgc/diff/diff_lists.h"

#include "gmock/gmock.h"

namespace cgc::tool {
namespace {

std::vector<DiffOp> ops(const std::string &body) {
  ir::Diagnostics diagnostics;
  auto module =
      ir::parseModule("graph @f(%x: f32[2]) {\n" + body + "\n}", "test.cgir", diagnostics);
  EXPECT_TRUE(module) << diagnostics.render();
  return diffListsOf(*module).lists.at("graph @f");
}

/// The differences as text, for example "-%1 +%2 ~%3>%4", with the name of each op's first result.
std::string differences(const std::string &before, const std::string &after) {
  const auto a = ops(before), b = ops(after);
  auto name = [](const DiffOp &op) { return op.text.substr(0, op.text.find(' ')); };
  std::string text;
  for (const OpDifference &d : diffOps(a, b).differences) {
    text += text.empty() ? "" : " ";
    if (d.kind == OpDifference::Removed)
      text += "-" + name(a[d.before]);
    else if (d.kind == OpDifference::Added)
      text += "+" + name(b[d.after]);
    else
      text += "~" + name(a[d.before]) + ">" + name(b[d.after]);
  }
  return text;
}

TEST(OpDiff, NamesDoNotMatter) {
  EXPECT_EQ(differences("%0 = aten.exp(%x) : f32[2]\n%1 = aten.neg(%0) : f32[2]\noutput %1",
                        "%a = aten.exp(%x) : f32[2]\n%b = aten.neg(%a) : f32[2]\noutput %b"),
            "");
}

TEST(OpDiff, ARemovedOpDoesNotChangeItsNeighbors) {
  EXPECT_EQ(differences("%0 = aten.exp(%x) : f32[2]\n%1 = aten.abs(%x) : f32[2]\n"
                        "%2 = aten.neg(%0) : f32[2]\noutput %2",
                        "%0 = aten.exp(%x) : f32[2]\n%1 = aten.neg(%0) : f32[2]\noutput %1"),
            "-%1");
}

TEST(OpDiff, AChangedOperandIsAChange) {
  EXPECT_EQ(differences("%0 = aten.exp(%x) : f32[2]\n%1 = aten.neg(%0) : f32[2]\noutput %1",
                        "%0 = aten.abs(%x) : f32[2]\n%1 = aten.neg(%0) : f32[2]\noutput %1"),
            "-%0 +%0 ~%1>%1");
}

TEST(OpDiff, AnotherResultOfTheOperandIsAChange) {
  const std::string chunk = "%0, %1 = aten.chunk(%x) {chunks=2} : f32[1], f32[1]\n";
  EXPECT_EQ(differences(chunk + "%2 = aten.exp(%0) : f32[1]\noutput %2",
                        chunk + "%2 = aten.exp(%1) : f32[1]\noutput %2"),
            "~%2>%2");
}

TEST(OpDiff, ConstantsAndTypesAreChanges) {
  EXPECT_EQ(differences("%0 = aten.mul(%x, 2) : f32[2]\noutput %0",
                        "%0 = aten.mul(%x, 3) : f32[2]\noutput %0"),
            "~%0>%0");
  EXPECT_EQ(differences("%0 = aten.mul(%x, 2) : f32[2]\noutput %0",
                        "%0 = aten.mul(%x, 2) : f16[2]\noutput %0"),
            "~%0>%0");
}

TEST(OpDiff, TheModuleTellsEqualOpsApart) {
  EXPECT_EQ(differences("%0 = aten.exp(%x) : f32[2] loc(\"m.py\":1 \"a\")\n"
                        "%1 = aten.exp(%0) : f32[2] loc(\"m.py\":1 \"b\")\noutput %1",
                        "%0 = aten.exp(%x) : f32[2] loc(\"m.py\":1 \"b\")\noutput %0"),
            "-%0 ~%1>%0");
}

TEST(PlanDiff, WeightsAreComparedByContentAndArenasBySize) {
  const auto facts = [](uint64_t hash, uint64_t arenaBytes) {
    PlanData plan;
    plan.weights = {{.name = "w", .dtype = DType::F32, .sizes = {2}, .hash = hash}};
    plan.entries = {{.name = "f", .buckets = {{.arenaBytes = arenaBytes}}}};
    return diffListsOf(plan).facts;
  };
  EXPECT_EQ(facts(1, 64), facts(1, 64));
  EXPECT_NE(facts(1, 64), facts(2, 64));
  EXPECT_NE(facts(1, 64), facts(1, 128));
}

} // namespace
} // namespace cgc::tool

// Frontend refusals: unsupported constructs, and files that are not TorchScript.
#include "frontend/frontend.h"
#include "tests/numerics/imported.h"
#include "tests/numerics/test_models.h"
#include "tests/temp_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace cgc::frontend {
namespace {

using test::floats;
using test::lineOf;
using test::offenders;
using test::smallModel;
using test::specialize;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

TEST(FrontendRefusals, RefusesDataDependentFlowByLineAndCollectsAll) {
  auto found = offenders(smallModel("data_dependent"), {floats({3, 4})});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].message, HasSubstr("data-dependent control flow"));
  EXPECT_THAT(found[0].loc.file, HasSubstr("small_models.py"));
  EXPECT_EQ(found[0].loc.line, lineOf("branch"));
  EXPECT_EQ(found[1].loc.line, lineOf("loop"));
}

TEST(FrontendRefusals, TakesAttributesThatAreNoDenseTensors) {
  EXPECT_TRUE(offenders(smallModel("attributes"), {floats({3, 4})}).empty());
}

TEST(FrontendRefusals, TakesArchivesWithOddPartsThatTheModelDoesNotUse) {
  for (const char *model : {"no_data", "file_beside", "cycle", "shared_parts"})
    EXPECT_TRUE(offenders(smallModel(model), {floats({3, 4})}).empty()) << model;
}

/// Returns the errors of `shape_condition` by line.
std::map<unsigned, std::string> inShapeCondition(std::vector<int64_t> sizes) {
  std::map<unsigned, std::string> found;
  for (const ir::Diagnostic &error : offenders(smallModel("shape_condition"), {floats(sizes)}))
    found[error.loc.line] += error.message;
  return found;
}

TEST(FrontendRefusals, ShapesOfTheBucketDecideBranches) {
  auto many = inShapeCondition({3, 4}), one = inShapeCondition({1, 4});
  EXPECT_THAT(many[lineOf("taken")], HasSubstr("aten::i0"));
  EXPECT_EQ(many[lineOf("other")], "");
  EXPECT_EQ(one[lineOf("taken")], "");
  EXPECT_THAT(one[lineOf("other")], HasSubstr("aten::special_bessel_j0"));
  EXPECT_THAT(inShapeCondition({3, 4, 5})[lineOf("rank")], HasSubstr("raises an exception"));
}

TEST(FrontendRefusals, ListsWhatIsInsideAndBehindARefusedBranch) {
  auto found = inShapeCondition({3, 4});
  EXPECT_THAT(found[lineOf("sum")], HasSubstr("data-dependent control flow"));
  EXPECT_THAT(found[lineOf("inside")], HasSubstr("aten::special_airy_ai"));
  EXPECT_THAT(found[lineOf("after")], HasSubstr("aten::special_bessel_j1"));
}

TEST(FrontendRefusals, NamesTheUsersLineOfWhatTorchsOwnCodeCalls) {
  for (const char *model : {"other_lines", "other_lines_scripted"}) {
    std::vector<std::pair<std::string, unsigned>> lines;
    for (const ir::Diagnostic &error : offenders(smallModel(model), {floats({3, 4})})) {
      EXPECT_THAT(error.loc.file, HasSubstr("small_models.py")) << error.message;
      const std::string op = error.message.substr(0, error.message.find(": it"));
      lines.emplace_back(op.substr(0, op.find('.')), error.loc.line); // Without the overload.
    }
    const std::string cannot = "cgc cannot compile aten::";
    EXPECT_THAT(lines, ElementsAre(std::pair(cannot + "multilabel_margin_loss", lineOf("module")),
                                   std::pair(cannot + "multi_margin_loss", lineOf("function")),
                                   std::pair(cannot + "bitwise_left_shift", lineOf("operator"))))
        << model;
  }
}

TEST(FrontendRefusals, RefusesInputsThatAreNoTensorsAndMethodsThatReturnNothing) {
  auto found = offenders(smallModel("other_inputs"), {floats({3, 4}), floats({}), floats({3, 4})});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].message, HasSubstr("input 'count' of forward is of type int"));
  EXPECT_THAT(found[1].message, HasSubstr("input 'more' of forward is of type List[Tensor]"));
  found = offenders(smallModel("other_inputs"), {floats({3, 4})}, "nothing");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].message, HasSubstr("returns no tensor"));
}

TEST(FrontendRefusals, OptionalInputsAreLeftOutOrGiven) {
  for (const auto &[inputs, op] :
       {std::pair(std::vector<ir::Type>{floats({3, 4}), floats({3, 4})}, ir::OpKind::Add),
        std::pair(std::vector<ir::Type>{floats({3, 4}), ir::Type()}, ir::OpKind::Neg)}) {
    ir::Diagnostics diagnostics;
    auto graph = specialize(smallModel("optional"), "forward", inputs, diagnostics);
    ASSERT_TRUE(graph) << diagnostics.render();
    EXPECT_TRUE(graph->outputs().front().value()->node()->is(op));
    EXPECT_EQ(graph->inputs().size(), op == ir::OpKind::Add ? 2u : 1u);
  }
}

TEST(FrontendRefusals, RefusesChangesOfListsThatMayHaveAnotherName) {
  auto found = offenders(smallModel("other_name"), {floats({3, 4})});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].message, HasSubstr("may have another name"));
  EXPECT_EQ(found[0].loc.line, lineOf("other name"));
  EXPECT_EQ(found[1].loc.line, lineOf("in a loop"));
}

TEST(FrontendRefusals, RefusesArgumentsThatTheOpDoesNotHave) {
  auto found = offenders(smallModel("other_argument"), {floats({3, 4})});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].message, HasSubstr("support the argument 'out_dtype' of aten::mm"));
  EXPECT_EQ(found[0].loc.line, lineOf("argument"));
}

TEST(FrontendRefusals, RefusesArgumentsThatAFunctionDoesNotAskFor) {
  auto found = offenders(smallModel("unasked_argument"), {floats({3, 4})});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].message,
              HasSubstr("support the argument 'output_size' of aten::repeat_interleave"));
  EXPECT_EQ(found[0].loc.line, lineOf("unasked"));
}

TEST(FrontendRefusals, RefusesArgumentsThatDecideTheImportUnlessTheyAreConstants) {
  auto found = offenders(smallModel("unknown_arguments"), {floats({2, 3, 4})});
  ASSERT_EQ(found.size(), 4u);
  for (size_t i = 0; const char *name : {"mode", "training", "copy", "use_input_stats"}) {
    EXPECT_THAT(found[i].message,
                HasSubstr("cgc takes a constant '" + std::string(name) + "' of aten::"));
    EXPECT_EQ(found[i++].loc.line, lineOf(name));
  }
}

TEST(FrontendRefusals, RefusesCallsThatOnlyChangeTheirArguments) {
  auto found = offenders(smallModel("changes_argument"), {floats({3, 4})});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].message, HasSubstr("returns nothing but changes its arguments"));
  EXPECT_EQ(found[0].loc.line, lineOf("changed"));
}

TEST(FrontendRefusals, RefusesComplexNumbers) {
  std::string text;
  for (const ir::Diagnostic &error : offenders(smallModel("complex"), {floats({3, 4})}))
    text += error.message;
  EXPECT_THAT(text, HasSubstr("aten::view_as_complex: it computes with complex numbers"));
  EXPECT_THAT(text, HasSubstr("no dtype ComplexFloat"));
}

TEST(FrontendRefusals, RefusesTensorsWhoseMemoryHoldsOtherNumbers) {
  std::vector<std::string> messages;
  for (const ir::Diagnostic &error : offenders(smallModel("negated"), {floats({3, 4})}))
    messages.push_back(error.message);
  EXPECT_THAT(messages, UnorderedElementsAre(HasSubstr("'negated' is a negated view"),
                                             HasSubstr("cgc does not support a negated view"),
                                             HasSubstr("'conjugate' is a ComplexFloat tensor")));
}

TEST(FrontendRefusals, RefusesOpsWithoutARuleOnValuesThatAreNotFixed) {
  auto found = offenders(smallModel("not_fixed"), {floats({3, 4})});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_THAT(found[0].message, HasSubstr("aten::i0"));
  EXPECT_EQ(found[0].loc.line, lineOf("overwritten"));
  EXPECT_THAT(found[1].message, HasSubstr("aten::squeeze_"));
  EXPECT_EQ(found[1].loc.line, lineOf("squeezed"));
  EXPECT_THAT(found[2].message, HasSubstr("aten::multinomial"));
  EXPECT_EQ(found[2].loc.line, lineOf("drawn"));
}

TEST(FrontendRefusals, NamesWhatScriptedParametrizationsRaise) {
  auto found = offenders(smallModel("scripted_parametrization"), {floats({3, 4})});
  ASSERT_FALSE(found.empty());
  EXPECT_THAT(found[0].message, HasSubstr("Parametrization is not working with scripting"));
}

TEST(FrontendRefusals, NamesTheOpOfAnotherLibraryThatKeepsAModelFromBeingRead) {
  const Status status = importTorchScript(smallModel("foreign_op")).status();
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_THAT(status.message(), HasSubstr("the model uses 'elsewhere::twice', an op or class of"));
}

// Wrong files.

TEST(FrontendRefusals, SaysWhatAForeignFileIs) {
  test::TempFolder temporary;
  const std::string folder = temporary / "cgc_foreign";
  std::filesystem::create_directories(folder);
  auto write = [&](const char *name, const std::string &bytes) {
    std::string path = folder + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {folder + "/missing.pt", "missing.pt"},
      {folder, "cgc_foreign"},
      {write("empty.pt", ""), "empty"},
      {write("image.pt", "\x89PNG\r\n\x1a\n0000"), "PNG"},
      {smallModel("state_dict"), "torch.save"},
      {smallModel("truncated"), "truncated"},
      {smallModel("flipped"), "the record 'casts/data/"},
      {smallModel("past_bytes"), "bytes, fewer than a tensor in it takes"},
      {smallModel("short_weight"), "the record 'data/0' has"},
      {smallModel("long_storage"), "the record 'data/2' has 64 bytes"},
      {smallModel("negative_offset"), "bytes, fewer than a tensor in it takes"},
      {smallModel("newer"), "a newer PyTorch wrote this file than LibTorch 2.11"},
      {smallModel("overlap"), "the record 'data/1' has 8 bytes"},
      {smallModel("short_constant"), "the record 'constants/0' has"},
      {smallModel("bad_code"), "LibTorch cannot read this as TorchScript"},
  };
  for (const auto &[path, expected] : cases) {
    Status status = importTorchScript(path).status();
    EXPECT_EQ(status.code(), Code::InvalidFile) << path;
    EXPECT_THAT(status.message(), HasSubstr(expected));
    EXPECT_THAT(status.message(), Not(HasSubstr("\n"))) << "LibTorch's frames stay out";
  }
}

} // namespace
} // namespace cgc::frontend

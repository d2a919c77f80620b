// Offenders: the ops of ir/offenders.def exist in this LibTorch, none of them compiles, and each
// tagged line of a scripted model reports its cause.
#include "ir/offenders.h"
#include "tests/paths.h"

#include "ir/diagnostics.h"
#include "ir/op_kind.h"
#include "passes/pipeline.h"
#include "passes/specialize/specialize.h"
#include "tests/numerics/imported.h"
#include "tests/numerics/test_models.h"

#include <torch/csrc/jit/runtime/operator.h>

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>

namespace cgc::frontend {
namespace {

const std::set<std::string> kOffenders = {
#define CGC_CAUSE(Enum, id, why, fix)
#define CGC_OFFENDER(op, cause) op,
#include "ir/offenders.def"
};

bool exists(const std::string &op) {
  return !torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(op)).empty();
}

TEST(Offenders, AreOpsOfLibTorch) {
  for (const std::string &op : kOffenders)
    // Excludes nodes without a schema, and ops that LibTorch's CUDA library registers.
    if (!op.starts_with("prim::") && !op.starts_with("cuda::")) {
      EXPECT_TRUE(exists(op) || exists(op + "_")) << op;
    }
}

TEST(Offenders, AreNotImported) {
  for (const std::string &op : kOffenders)
    EXPECT_FALSE(ir::parseOpName("aten." + op.substr(op.find("::") + 2))) << op;
  for (const char *imported : {
#define CGC_ATEN(name, op, spec) name,
#define CGC_ATEN_FN(name, function) name,
#include "frontend/ops/aten.def"
       })
    EXPECT_FALSE(kOffenders.contains(imported)) << imported;
}

TEST(Offenders, CountInPlaceFormsAndKnowTheirCause) {
  EXPECT_EQ(ir::causeOf("aten::exponential_"), ir::Cause::Random);
  EXPECT_EQ(ir::causeOf("aten::nonzero"), ir::Cause::DataShape);
  EXPECT_EQ(ir::causeOf("quantized::linear_dynamic"), ir::Cause::Quantized);
  EXPECT_EQ(ir::causeOf("aten::i0"), ir::Cause::NoRule);
  EXPECT_EQ(ir::parseCause(ir::textOf(ir::Cause::HostCopy).id), ir::Cause::HostCopy);
  EXPECT_EQ(ir::parseCause("no such cause"), ir::Cause::None);
}

/// Returns the causes that small_models.py names, by line, from the line that contains `begin` to
/// the next method or class.
std::map<unsigned, std::string> taggedLines(const std::string &begin) {
  std::ifstream file(test::sourceDir() / "tests/numerics/small_models.py");
  const std::string tag = "# OFFENDER: ";
  std::map<unsigned, std::string> tags;
  std::string line;
  bool isInside = false;
  for (unsigned number = 1; std::getline(file, line); ++number) {
    if (isInside && (line.starts_with("class ") || line.ends_with("@torch.jit.export")))
      break;
    isInside |= line.find(begin) != std::string::npos;
    if (const size_t at = line.find(tag); isInside && at != std::string::npos)
      tags[number] = line.substr(at + tag.size());
  }
  return tags;
}

/// Checks that the offenders are at the tagged lines after `begin`, each with the cause named on
/// its line.
void expectTagged(const std::string &begin, llvm::ArrayRef<ir::Diagnostic> found) {
  const std::map<unsigned, std::string> tags = taggedLines(begin);
  EXPECT_FALSE(tags.empty()) << begin;
  std::map<unsigned, std::string> causes;
  for (const ir::Diagnostic &error : found) {
    std::string &cause = causes[error.loc.line];
    EXPECT_TRUE(cause.empty() || cause == ir::textOf(error.cause).id) << error.message;
    cause = ir::textOf(error.cause).id;
    EXPECT_FALSE(error.op.empty()) << error.message;
  }
  EXPECT_EQ(causes, tags) << begin;
}

TEST(Offenders, OfAModelAreAllNamedWithTheirCauses) {
  const std::string path = test::smallModel("offenders");
  auto module = test::import(path);
  ASSERT_TRUE(module);
  std::set<std::string> causes;
  for (const auto &method : module->graphs()) {
    if (method->name() == "forward")
      continue;
    const std::vector<ir::Type> inputs(method->inputs().size(), test::floats({3, 4}));
    const auto found = test::offenders(path, inputs, method->name());
    expectTagged("def " + method->name() + "(", found);
    for (const ir::Diagnostic &error : found)
      causes.insert(ir::textOf(error.cause).id.str());
  }
  for (const char *cause : {
#define CGC_CAUSE(Enum, id, why, fix) id,
#define CGC_OFFENDER(op, cause)
#include "ir/offenders.def"
       })
    EXPECT_TRUE(causes.contains(cause)) << cause << " has no line in small_models.py";
}

TEST(Offenders, AreTheSameWithoutShapes) {
  auto module = test::import(test::smallModel("offenders"));
  ASSERT_TRUE(module);
  auto pipeline = passes::PipelineBuilder().setPasses("inline").build();
  ASSERT_TRUE(pipeline && pipeline->prepare(*module, {}).isOk());
  for (const auto &method : module->graphs()) {
    ir::Diagnostics diagnostics;
    passes::diagnose(*method->clone("judged"), DeviceKind::Cuda, diagnostics);
    if (method->name() == "forward")
      EXPECT_FALSE(diagnostics.hasErrors()) << diagnostics.render();
    else
      expectTagged("def " + method->name() + "(", diagnostics.errors());
  }
}

TEST(Offenders, OfAModelWithStreamsAreAllNamed) {
  expectTagged("class Streams",
               test::offenders(test::smallModel("streams"), {test::floats({3, 4})}));
}

} // namespace
} // namespace cgc::frontend

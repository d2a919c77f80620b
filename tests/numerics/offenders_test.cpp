// Offenders: the ops of ir/offenders.def are ops of this LibTorch, and none of them compiles.
#include "ir/offenders.h"

#include <torch/csrc/jit/runtime/operator.h>

#include <gtest/gtest.h>

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
    // Nodes without a schema, and what LibTorch's CUDA library registers, are not there.
    if (!op.starts_with("prim::") && !op.starts_with("cuda::")) {
      EXPECT_TRUE(exists(op) || exists(op + "_")) << op;
    }
}

TEST(Offenders, HaveNoRowThatImportsThem) {
  for (const char *imported : {
#define CGC_ATEN(name, op, spec) name,
#define CGC_ATEN_FN(name, function) name,
#include "frontend/aten.def"
       })
    EXPECT_FALSE(kOffenders.contains(imported)) << imported;
}

TEST(Offenders, CountInPlaceFormsAndKnowTheirCause) {
  EXPECT_EQ(ir::causeOf("aten::bernoulli_"), ir::Cause::Random);
  EXPECT_EQ(ir::causeOf("aten::nonzero"), ir::Cause::DataShape);
  EXPECT_EQ(ir::causeOf("aten::erfinv"), ir::Cause::NoRule);
  EXPECT_EQ(ir::parseCause(ir::textOf(ir::Cause::HostCopy).id), ir::Cause::HostCopy);
  EXPECT_EQ(ir::parseCause("no such cause"), ir::Cause::None);
}

} // namespace
} // namespace cgc::frontend

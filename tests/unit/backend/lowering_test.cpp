// Tests of lowering(): what is derived from the definitions of the ops.
#include "backend/lowering.h"

#include "ir/op_def.h"
#include "runtime/plan/aten_ops.h"

#include <gtest/gtest.h>

namespace cgc::backend {
namespace {

TEST(Lowering, CallsOnlyOpsThatAPlanMayCall) {
  for (unsigned i = 0; i < ir::kNumOps; ++i) {
    const auto op = static_cast<ir::OpKind>(i);
    const Lowering &row = lowering(op);
    if (row.kind != Lowering::Kind::Into && row.kind != Lowering::Kind::Copied)
      continue;
    EXPECT_TRUE(isAllowedAtenOp(row.op))
        << ir::opName(op).str() << " calls " << row.op
        << ", which runtime/plan/aten_ops.h does not "
        << "have: audit it as that file says and add a row, or lower the op to other calls";
  }
}

} // namespace
} // namespace cgc::backend

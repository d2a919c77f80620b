// aten.margin_ranking_loss: margin ranking loss.
#include "ir/op_builder.h"
#include "ir/ops/loss_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferMarginRankingLoss(const InferArgs &args, rules::Results &results) {
  return rules::loss(args, {"input1", "input2", "target"}, results);
}

Result<Values> defineMarginRankingLoss(OpBuilder &b) {
  Value *difference = b.sub(b.arg("input1"), b.arg("input2"));
  Value *product = b.mul(b.neg(b.input("target")), difference);
  return rules::reduced(b, b.call(OpKind::ClampMin, {b.add(product, b.arg("margin")), 0.0}));
}

} // namespace

const OpDef defs::MarginRankingLoss = {
    .schema = "(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> "
              "Tensor",
    .traits = kPure | kReduction,
    .infer = inferMarginRankingLoss,
    .decompose = defineMarginRankingLoss,
    .doc = "max(0, -target * (input1 - input2) + margin), reduced.",
};

} // namespace cgc::ir

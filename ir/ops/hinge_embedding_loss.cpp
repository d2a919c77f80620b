// aten.hinge_embedding_loss: the loss of pairs that are alike or not.
#include "ir/ops/loss_rules.h"

namespace cgc::ir {
namespace {

/// Both terms count where target is neither 1 nor -1, as in LibTorch.
Result<Values> defineHingeEmbeddingLoss(OpBuilder &b) {
  const Arg &self = b.arg("self"), &target = b.arg("target");
  Value *distance = b.call(OpKind::ClampMin, {b.call(OpKind::Rsub, {self, b.arg("margin")}), 0.0});
  Value *unlike = b.where(b.call(OpKind::Ne, {target, 1}), distance);
  Value *alike = b.where(b.call(OpKind::Ne, {target, -1}), b.input("self"));
  return rules::reduced(b, b.add(unlike, alike));
}

} // namespace

const OpDef defs::HingeEmbeddingLoss = {
    .schema = "(Tensor self, Tensor target, float margin=1.0, int reduction=1) -> Tensor",
    .traits = kPure | kReduction,
    .infer = rules::pairLoss,
    .decompose = defineHingeEmbeddingLoss,
    .doc = "self where target is 1 and max(0, margin - self) where it is -1, elementwise and then "
           "reduced.",
};

} // namespace cgc::ir

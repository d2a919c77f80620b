// aten.tril: lower triangle.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Tril = {
    .schema = "(Tensor self, int diagonal=0) -> Tensor",
    .traits = kPure | kMove,
    .infer = rules::matrices,
    .batch = batch::allButLast<2>,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.call(OpKind::Tril, {b.grad(), b.arg("diagonal")}));
          return Status::ok();
        },
    .doc = "self [..., M, N] with zeros above this diagonal.",
};

} // namespace cgc::ir

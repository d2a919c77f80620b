// aten.triu: upper triangle.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Triu = {
    .schema = "(Tensor self, int diagonal=0) -> Tensor",
    .traits = kPure | kMove,
    .infer = rules::matrices,
    .batch = batch::allButLast<2>,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.call(OpKind::Triu, {b.grad(), b.arg("diagonal")}));
          return Status::ok();
        },
    .doc = "self [..., M, N] with zeros below this diagonal.",
};

} // namespace cgc::ir

// aten.flip: reversed order along dimensions.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferFlip(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_TRY(rules::listedDims(args, "dims", self.rank()).status());
  return rules::addDense(results, self.dtype, self.sizes);
}

} // namespace

const OpDef defs::Flip = {
    .schema = "(Tensor self, int[] dims) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferFlip,
    .aten = "copy aten::flip",
    .batch = batch::otherDims,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", b.call(OpKind::Flip, {b.grad(), b.arg("dims")}));
          return Status::ok();
        },
    .doc = "self with the order of the elements along the listed dimensions reversed.",
};

} // namespace cgc::ir

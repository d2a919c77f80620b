// aten.view: the same elements with other sizes.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/view_rules.h"

namespace cgc::ir {
namespace {

Status inferView(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(Dims sizes, rules::inferSize("size", args.ints("size"), self.numElements()));
  return rules::addReshaped(results, self, sizes);
}

} // namespace

const OpDef defs::View = {
    .schema = "(Tensor self, int[] size) -> Tensor",
    .traits = kPure | kView,
    .infer = inferView,
    .batch = batch::view,
    .gradient = gradient::reshaped,
    .doc = "The elements of self in row-major order under other sizes; one size may be -1. A view "
           "where the strides of self allow it, else a copy (LibTorch fails there).",
};

} // namespace cgc::ir

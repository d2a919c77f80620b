// aten.reshape: the same elements with other sizes.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/view_rules.h"

namespace cgc::ir {
namespace {

Status inferReshape(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(Dims sizes,
                       rules::inferSize("shape", args.ints("shape"), self.numElements()));
  return rules::addReshaped(results, self, sizes);
}

} // namespace

const OpDef defs::Reshape = {
    .schema = "(Tensor self, int[] shape) -> Tensor",
    .traits = kPure | kView,
    .infer = inferReshape,
    .batch = batch::view,
    .gradient = gradient::reshaped,
    .doc = "The elements of self in row-major order under other sizes; one size may be -1. A view "
           "where the strides of self allow it, else a copy.",
};

} // namespace cgc::ir

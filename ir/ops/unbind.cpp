// aten.unbind: all slices along one dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/view_rules.h"

namespace cgc::ir {
namespace {

Status inferUnbind(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t dim, rules::dimOfSelf(args));
  CGC_TRY(rules::checkResultCount(self.sizes[dim]));
  for (int64_t i = 0; i < self.sizes[dim]; ++i)
    CGC_TRY(rules::addSelected(results, self, dim, i));
  return Status::ok();
}

} // namespace

const OpDef defs::Unbind = {
    .schema = "(Tensor self, int dim=0) -> Tensor[]",
    .traits = kPure | kView,
    .infer = inferUnbind,
    .batch = batch::parts,
    .gradient = [](GradientBuilder &b) { return gradient::joined(b, OpKind::Stack); },
    .doc = "One result for each index of dimension dim, which is dropped.",
};

} // namespace cgc::ir

// aten.glu: a gated linear unit.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferGlu(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  if (!isFloating(self.dtype) || self.rank() == 0)
    return rules::mismatch("self", "of a floating dtype, with dimensions", self);
  CGC_ASSIGN_OR_RETURN(const int64_t dim, rules::wrapDim("dim", args.integer("dim"), self.rank()));
  Dims sizes = self.sizes;
  if (sizes[dim] % 2 != 0)
    return rules::mismatch("self", "of an even size in dimension " + llvm::Twine(dim), self);
  sizes[dim] /= 2;
  return rules::addDense(results, self.dtype, sizes);
}

Result<Values> defineGlu(OpBuilder &b) {
  Node *halves = b.callNode(OpKind::Chunk, {b.arg("self"), 2, b.arg("dim")});
  return Values{b.mul(halves->result(0), b.call(OpKind::Sigmoid, {halves->result(1)}))};
}

} // namespace

const OpDef defs::Glu = {
    .schema = "(Tensor self, int dim=-1) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferGlu,
    .decompose = defineGlu,
    .doc = "The first half of self along dim times the sigmoid of the second. Floating dtypes.",
};

} // namespace cgc::ir

// aten.renorm: bounded norms of slices.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferRenorm(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  if (!isFloating(self.dtype) || self.rank() < 2)
    return rules::mismatch("self", "of a floating dtype, with at least 2 dimensions", self);
  CGC_TRY(rules::wrapDim("dim", args.integer("dim"), self.rank()).status());
  if (!(args.number("p") > 0))
    return rules::refuse("expected 'p' to be positive");
  if (!(args.number("maxnorm") >= 0))
    return rules::refuse("expected 'maxnorm' not to be negative");
  return rules::addDense(results, self.dtype, self.sizes);
}

Result<Values> defineRenorm(OpBuilder &b) {
  Value *self = b.input("self");
  const int64_t rank = self->tensor().rank();
  CGC_ASSIGN_OR_RETURN(const int64_t dim, rules::wrapDim("dim", b.args().integer("dim"), rank));
  Dims others;
  for (int64_t d = 0; d < rank; ++d)
    if (d != dim)
      others.push_back(d);
  const DType dtype = self->tensor().dtype;
  const DType wide = dtype == DType::F64 ? DType::F64 : DType::F32;
  Value *norm = b.call(OpKind::LinalgVectorNorm, {self, b.arg("p"), Arg::ints(others), true, wide});
  Value *factor = b.div(b.arg("maxnorm"), b.add(norm, 1e-7));
  Value *isLarge = b.call(OpKind::Gt, {norm, b.arg("maxnorm")});
  factor = b.to(b.call(OpKind::Where, {isLarge, factor, 1.0}), dtype);
  return Values{b.mul(self, factor)};
}

} // namespace

const OpDef defs::Renorm = {
    .schema = "(Tensor self, number p, int dim, number maxnorm) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferRenorm,
    .decompose = defineRenorm,
    .doc =
        "self, of which each slice at an index of dim is scaled to the p-norm maxnorm if its own "
        "is larger; floating dtypes.",
};

} // namespace cgc::ir

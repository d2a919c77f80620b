// aten.prod: product along a dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/reduction_rules.h"

namespace cgc::ir {
namespace {

Status inferProd(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t dim, rules::wrapDim("dim", args.integer("dim"), self.rank()));
  llvm::SmallVector<bool, 6> reduced(self.rank(), false);
  if (self.rank() > 0)
    reduced[dim] = true;
  return rules::addDense(results, rules::accumulationDType(args),
                         rules::reducedSizes(self.sizes, reduced, args.boolean("keepdim")));
}

/// The gradient of an element is the product of the others, which is formed without a division by
/// the element: it may be 0.
Status backwardProd(GradientBuilder &b) {
  const DType dtype = b.result()->tensor().dtype;
  Value *self = b.to(b.input("self"), dtype), *grad = b.grad();
  if (self->tensor().rank() == 0) {
    b.set("self", grad);
    return Status::ok();
  }
  CGC_ASSIGN_OR_RETURN(const int64_t dim,
                       rules::wrapDim("dim", b.arg("dim").as<int64_t>(), self->tensor().rank()));
  self = b.call(OpKind::Transpose, {self, dim, -1});
  Value *isSame = gradient::identityMatrix(b, self->tensor().sizes.back());
  Value *others = b.call(OpKind::Where, {isSame, 1.0, b.call(OpKind::Unsqueeze, {self, -2})});
  others = b.call(OpKind::Transpose, {b.call(OpKind::Prod, {others, -1}), dim, -1});
  if (!b.arg("keepdim").as<bool>())
    grad = b.call(OpKind::Unsqueeze, {grad, dim});
  b.set("self", b.mul(grad, others));
  return Status::ok();
}

} // namespace

const OpDef defs::Prod = {
    .schema = "(Tensor self, int dim, bool keepdim=false, dtype? dtype=none) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferProd,
    .aten = "aten::prod.int_out",
    .batch = batch::reduction,
    .gradient = backwardProd,
    .doc = "The product along dim. Integers and bools give i64 unless dtype is given.",
};

} // namespace cgc::ir

// aten.matmul: matrix product.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferMatmul(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self"), &other = args.tensor("other");
  for (llvm::StringRef name : {"self", "other"})
    if (args.tensor(name).rank() < 1)
      return rules::mismatch(name, "of rank 1 or more", args.tensor(name));
  if (self.dtype == DType::Bool)
    return rules::mismatch("self", "of a numeric dtype", self);
  CGC_TRY(rules::sameDType(args, "self", {"other"}));
  llvm::ArrayRef<int64_t> a = self.sizes, b = other.sizes;
  int64_t inner = b.size() == 1 ? b[0] : b[b.size() - 2];
  if (a.back() != inner)
    return rules::mismatch(
        "other", "[..., " + llvm::Twine(a.back()) + ", N], as the last dimension of 'self'", other);
  CGC_ASSIGN_OR_RETURN(Dims sizes, rules::broadcast("the leading dimensions of 'self' and 'other'",
                                                    a.drop_back(std::min<size_t>(a.size(), 2)),
                                                    b.drop_back(std::min<size_t>(b.size(), 2))));
  if (a.size() > 1)
    sizes.push_back(a[a.size() - 2]);
  if (b.size() > 1)
    sizes.push_back(b.back());
  return rules::addDense(results, self.dtype, sizes);
}

/// `value` as a matrix: a vector gets a dimension of 1 at `dim`.
Value *asMatrix(GradientBuilder &b, Value *value, int64_t dim) {
  return value->tensor().rank() > 1 ? value : b.call(OpKind::Unsqueeze, {value, dim});
}

Status backwardMatmul(GradientBuilder &b) {
  Value *self = b.input("self"), *other = b.input("other"), *grad = b.grad();
  const TensorType &selfType = self->tensor(), &otherType = other->tensor();
  if (otherType.rank() == 1)
    grad = b.call(OpKind::Unsqueeze, {grad, -1});
  if (selfType.rank() == 1)
    grad = b.call(OpKind::Unsqueeze, {grad, -2});
  Value *left = asMatrix(b, self, 0), *right = asMatrix(b, other, 1); // [..., M, K], [..., K, N].
  if (b.needs("self"))
    b.set("self", b.matmul(grad, b.transposed(right)));
  if (!b.needs("other"))
    return Status::ok();
  if (otherType.rank() <= 2) // One product sums over the rows of all matrices.
    b.set("other", b.reshape(gradient::productOfRows(b, left, grad), otherType.sizes));
  else
    b.set("other", b.matmul(b.transposed(left), grad));
  return Status::ok();
}

} // namespace

const OpDef defs::Matmul = {
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .traits = kPure | kGemm,
    .infer = inferMatmul,
    .batch = batch::matmul,
    .gradient = backwardMatmul,
    .doc = "self [..., M, K] times other [..., K, N], leading dimensions broadcast: [..., M, N]. A "
           "1-d operand is a vector, whose dimension is dropped.",
};

} // namespace cgc::ir

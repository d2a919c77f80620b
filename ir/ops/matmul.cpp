// aten.matmul: matrix product.
#include "ir/ops/batch_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
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

} // namespace

const OpDef defs::Matmul = {
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .traits = kPure | kGemm,
    .infer = infer,
    .batch = batch::matmul,
    .doc = "self [..., M, K] times other [..., K, N], leading dimensions broadcast: [..., M, N]. A "
           "1-d operand is a vector, whose dimension is dropped.",
};

} // namespace cgc::ir

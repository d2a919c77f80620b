// aten.scatter: replacement of one element for each index.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self"), &index = args.tensor("index");
  CGC_ASSIGN_OR_RETURN(int64_t dim, rules::wrapDim("dim", args.integer("dim"), self.rank()));
  if (index.dtype != DType::I64)
    return rules::mismatch("index", "of dtype i64", index);
  const bool hasTensor = args.isTensor("src");
  if (hasTensor)
    CGC_TRY(rules::sameDType(args, "self", {"src"}));
  // A 0-d tensor counts as a tensor of size [1].
  const int64_t rank = std::max<int64_t>(self.rank(), 1);
  if (std::max<int64_t>(index.rank(), 1) != rank)
    return rules::mismatch("index", "of rank " + llvm::Twine(self.rank()) + ", as 'self'", index);
  if (hasTensor && std::max<int64_t>(args.tensor("src").rank(), 1) != rank)
    return rules::mismatch("src", "of rank " + llvm::Twine(self.rank()) + ", as 'self'",
                           args.tensor("src"));
  if (index.numElements() > 0 && self.rank() > 0 && self.sizes[dim] == 0)
    return rules::mismatch("self", "nonempty in dimension " + llvm::Twine(dim), self);
  for (int64_t d = 0; d < index.rank(); ++d) {
    if (d != dim && d < self.rank() && index.sizes[d] > self.sizes[d])
      return rules::mismatch("index",
                             "no larger than 'self' " + rules::toString(self.sizes) +
                                 " but in dimension " + llvm::Twine(dim),
                             index);
    if (hasTensor && d < args.tensor("src").rank() && index.sizes[d] > args.tensor("src").sizes[d])
      return rules::mismatch("src",
                             "at least of the sizes of 'index' " + rules::toString(index.sizes),
                             args.tensor("src"));
  }
  return rules::addDense(results, self.dtype, self.sizes);
}

} // namespace

const OpDef defs::Scatter = {
    .schema = "(Tensor self, int dim, Tensor index, Tensor|number src) -> Tensor",
    .traits = kPure | kMove,
    .infer = infer,
    .doc = "self with result[i][index[i][j][k]][k] = src[i][j][k] for dim 1, for all of index. "
           "Indices must "
           "not repeat; a number stands for a src of equal elements.",
};

} // namespace cgc::ir

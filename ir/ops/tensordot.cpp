// aten.tensordot: a product summed over pairs of dimensions.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

#include "llvm/ADT/STLExtras.h"

#include <utility>

namespace cgc::ir {
namespace {

/// The dimensions of a tensor that are summed over, and the others, in order.
struct SplitDims {
  Dims summed, kept;
};
Result<SplitDims> splitDims(const InferArgs &args, llvm::StringRef tensor, llvm::StringRef dims) {
  const int64_t rank = args.tensor(tensor).rank();
  SplitDims split;
  llvm::SmallVector<bool, 6> isSummed(static_cast<size_t>(rank));
  for (int64_t dim : args.ints(dims)) {
    if (rank == 0)
      return rules::mismatch(tensor, "a tensor with dimensions", args.tensor(tensor));
    CGC_ASSIGN_OR_RETURN(dim, rules::wrapDim(dims, dim, rank));
    if (std::exchange(isSummed[dim], true))
      return rules::mismatch(dims, "different dimensions", dim);
    split.summed.push_back(dim);
  }
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!isSummed[dim])
      split.kept.push_back(dim);
  return split;
}

Status inferTensordot(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self"), &other = args.tensor("other");
  if (!isFloating(self.dtype))
    return rules::mismatch("self", "of a floating dtype", self);
  CGC_TRY(rules::sameDType(args, "self", {"other"}));
  CGC_ASSIGN_OR_RETURN(const SplitDims a, splitDims(args, "self", "dims_self"));
  CGC_ASSIGN_OR_RETURN(const SplitDims b, splitDims(args, "other", "dims_other"));
  if (a.summed.size() != b.summed.size())
    return rules::refuse("expected as many 'dims_other' as 'dims_self'");
  for (auto [x, y] : llvm::zip_equal(a.summed, b.summed))
    if (self.sizes[x] != other.sizes[y])
      return rules::mismatch(
          "other", "of size " + llvm::Twine(self.sizes[x]) + " in dimension " + llvm::Twine(y),
          other);
  Dims sizes;
  for (int64_t dim : a.kept)
    sizes.push_back(self.sizes[dim]);
  for (int64_t dim : b.kept)
    sizes.push_back(other.sizes[dim]);
  return rules::addDense(results, self.dtype, sizes);
}

Result<Values> defineTensordot(OpBuilder &b) {
  CGC_ASSIGN_OR_RETURN(const SplitDims first, splitDims(b.args(), "self", "dims_self"));
  CGC_ASSIGN_OR_RETURN(const SplitDims second, splitDims(b.args(), "other", "dims_other"));
  // A tensor as a matrix of the dimensions `rows` and `columns`.
  const auto matrix = [&](llvm::StringRef name, const Dims &rows, const Dims &columns) {
    Value *value = b.input(name);
    const Dims sizes = value->tensor().sizes;
    const auto product = [&](const Dims &dims) {
      int64_t all = 1;
      for (int64_t dim : dims)
        all *= sizes[dim];
      return all;
    };
    Dims order = rows;
    order.append(columns);
    return b.reshape(b.permute(value, order), {product(rows), product(columns)});
  };
  Value *left = matrix("self", first.kept, first.summed);
  Value *product = b.matmul(left, matrix("other", second.summed, second.kept));
  return Values{b.reshape(product, b.result()->tensor().sizes)};
}

} // namespace

const OpDef defs::Tensordot = {
    .schema = "(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    .traits = kPure | kGemm,
    .infer = inferTensordot,
    .decompose = defineTensordot,
    .doc = "The products of self and other, summed over the dimensions dims_self and dims_other, "
           "which pair up; then the other dimensions of self and of other. One floating dtype.",
};

} // namespace cgc::ir

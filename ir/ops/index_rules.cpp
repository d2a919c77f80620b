// index_rules: the type rules of ops whose elements are chosen by tensors of indices.
#include "ir/ops/index_rules.h"

#include "ir/graph.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::ir::rules {

Result<Dims> indexedSizes(const InferArgs &args) {
  const TensorType &self = args.tensor("self");
  const Arg::List &indices = args["indices"].list();
  if (static_cast<int64_t>(indices.size()) > self.rank())
    return refuse("expected at most " + llvm::Twine(self.rank()) + " 'indices', got " +
                  llvm::Twine(indices.size()));
  // The broadcast index tensors replace the indexed dimensions.
  Dims picked;
  std::optional<size_t> first, last;
  bool adjacent = true;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (indices[d].isNone())
      continue;
    const TensorType &index = indices[d].value()->tensor();
    if (index.dtype == DType::Bool || index.dtype == DType::U8)
      return mismatch("indices",
                      "integer tensors: how many elements a mask picks depends on data; use "
                      "masked_fill or where",
                      index);
    if (index.dtype != DType::I64 && index.dtype != DType::I32)
      return mismatch("indices", "of dtype i64 or i32", index);
    CGC_ASSIGN_OR_RETURN(picked, broadcast("'indices'", picked, index.sizes));
    adjacent &= !last || *last + 1 == d;
    first = first.value_or(d);
    last = d;
  }
  if (!first)
    return refuse("expected 'indices' to have a tensor, got only none");
  bool nothingPicked = llvm::is_contained(picked, 0);
  Dims sizes;
  size_t position = 0;
  for (size_t d = 0; d < self.sizes.size(); ++d) {
    if (adjacent && d == *first)
      position = sizes.size();
    if (d >= indices.size() || indices[d].isNone())
      sizes.push_back(self.sizes[d]);
    else if (self.sizes[d] == 0 && !nothingPicked)
      return mismatch("self", "nonempty in every indexed dimension", self);
  }
  sizes.insert(sizes.begin() + position, picked.begin(), picked.end());
  return sizes;
}

Status scatter(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self"), &index = args.tensor("index");
  CGC_ASSIGN_OR_RETURN(int64_t dim, wrapDim("dim", args.integer("dim"), self.rank()));
  if (index.dtype != DType::I64)
    return mismatch("index", "of dtype i64", index);
  const bool hasTensor = args.isTensor("src");
  if (hasTensor)
    CGC_TRY(sameDType(args, "self", {"src"}));
  // A 0-d tensor counts as a tensor of size [1].
  const int64_t rank = std::max<int64_t>(self.rank(), 1);
  if (std::max<int64_t>(index.rank(), 1) != rank)
    return mismatch("index", "of rank " + llvm::Twine(self.rank()) + ", as 'self'", index);
  if (hasTensor && std::max<int64_t>(args.tensor("src").rank(), 1) != rank)
    return mismatch("src", "of rank " + llvm::Twine(self.rank()) + ", as 'self'",
                    args.tensor("src"));
  if (index.numElements() > 0 && self.rank() > 0 && self.sizes[dim] == 0)
    return mismatch("self", "nonempty in dimension " + llvm::Twine(dim), self);
  for (int64_t d = 0; d < index.rank(); ++d) {
    if (d != dim && d < self.rank() && index.sizes[d] > self.sizes[d])
      return mismatch("index",
                      "no larger than 'self' " + toString(self.sizes) + " but in dimension " +
                          llvm::Twine(dim),
                      index);
    if (hasTensor && d < args.tensor("src").rank() && index.sizes[d] > args.tensor("src").sizes[d])
      return mismatch("src", "at least of the sizes of 'index' " + toString(index.sizes),
                      args.tensor("src"));
  }
  return addDense(results, self.dtype, self.sizes);
}

} // namespace cgc::ir::rules

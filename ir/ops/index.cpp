// aten.index: advanced indexing with tensors.
#include "ir/graph.h"
#include "ir/ops/rules.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  const Arg::List &indices = args["indices"].list();
  if (static_cast<int64_t>(indices.size()) > self.rank())
    return rules::refuse("expected at most " + llvm::Twine(self.rank()) + " 'indices', got " +
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
      return rules::mismatch("indices",
                             "integer tensors: how many elements a mask picks depends on data; use "
                             "masked_fill or where",
                             index);
    if (index.dtype != DType::I64 && index.dtype != DType::I32)
      return rules::mismatch("indices", "of dtype i64 or i32", index);
    CGC_ASSIGN_OR_RETURN(picked, rules::broadcast("'indices'", picked, index.sizes));
    adjacent &= !last || *last + 1 == d;
    first = first.value_or(d);
    last = d;
  }
  if (!first)
    return rules::refuse("expected 'indices' to have a tensor, got only none");
  bool nothingPicked = llvm::is_contained(picked, 0);
  Dims sizes;
  size_t position = 0;
  for (size_t d = 0; d < self.sizes.size(); ++d) {
    if (adjacent && d == *first)
      position = sizes.size();
    if (d >= indices.size() || indices[d].isNone())
      sizes.push_back(self.sizes[d]);
    else if (self.sizes[d] == 0 && !nothingPicked)
      return rules::mismatch("self", "nonempty in every indexed dimension", self);
  }
  sizes.insert(sizes.begin() + position, picked.begin(), picked.end());
  return rules::addDense(results, self.dtype, sizes);
}

} // namespace

const OpDef defs::Index = {
    .schema = "(Tensor self, Tensor?[] indices) -> Tensor",
    .traits = kPure | kMove | kAnyStrides,
    .infer = infer,
    .aten = "aten::index.Tensor_out",
    .doc = "Advanced indexing: one integer tensor, or none for all, for each leading dimension. "
           "The index tensors broadcast against each other; their sizes come where the first one "
           "stood, or in front if they are not adjacent. Bool masks are refused: their result size "
           "depends on data.",
};

} // namespace cgc::ir

// aten.index: advanced indexing with tensors.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/index_rules.h"

namespace cgc::ir {
namespace {

Status inferIndex(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(Dims sizes, rules::indexedSizes(args));
  return rules::addDense(results, args.tensor("self").dtype, sizes);
}

/// Rows stay rows if the dimension is not indexed, or by the number of each row:
/// x[arange(batch), tokens].
BatchState batchOfIndex(const BatchCall &call) {
  const TensorType &self = call.args.tensor("self");
  const Arg::List &indices = call.args["indices"].list();
  const auto isIndexed = [&](int64_t dim) {
    return dim < static_cast<int64_t>(indices.size()) && !indices[dim].isNone();
  };
  int64_t pickedRank = 0, first = -1, last = -1;
  bool adjacent = true;
  for (int64_t dim = 0; dim < self.rank(); ++dim)
    if (isIndexed(dim)) {
      pickedRank = std::max(pickedRank, indices[dim].value()->tensor().rank());
      adjacent &= last == -1 || last + 1 == dim;
      first = first == -1 ? dim : first;
      last = dim;
    }
  const int64_t position = adjacent ? first : 0; // Of the dimensions of the index tensors.
  const auto mapOf = [&](const TensorType &index) {
    batch::DimMap map(index.rank());
    for (int64_t dim = 0; dim < index.rank(); ++dim)
      map[dim] = position + pickedRank - index.rank() + dim;
    return map;
  };

  batch::DimMap map;
  batch::Join join(call);
  int64_t kept = 0; // The dimensions before that are not indexed.
  const BatchState rows = call.state(call.first());
  for (int64_t dim = 0; dim < self.rank(); ++dim) {
    if (!isIndexed(dim)) {
      map.push_back(kept + (kept >= position ? pickedRank : 0));
      ++kept;
      continue;
    }
    const TensorType &index = indices[dim].value()->tensor();
    const BatchState state = call.state(indices[dim]);
    const bool byNumber = state.kind == BatchState::RowIndex && state.inner == 1 &&
                          rows == BatchState::rows(dim) && self.sizes[dim] == call.batch() &&
                          index.sizes[state.dim] == call.batch();
    map.push_back(byNumber ? mapOf(index)[state.dim] : batch::kCombined);
    byNumber ? join.ignore(indices[dim]) : join.add(indices[dim], mapOf(index));
  }
  return join.add(call.args["self"], map).state();
}

} // namespace

const OpDef defs::Index = {
    .schema = "(Tensor self, Tensor?[] indices) -> Tensor",
    .traits = kPure | kMove | kAnyStrides,
    .infer = inferIndex,
    .aten = "aten::index.Tensor_out",
    .batch = batchOfIndex,
    .gradient = [](GradientBuilder &b) -> Status {
      b.set("self", b.call(OpKind::IndexPut,
                           {b.zerosLike(b.input("self")), b.arg("indices"), b.grad(), true}));
      return Status::ok();
    },
    .doc = "Advanced indexing: one integer tensor, or none for all, for each leading dimension. "
           "The index tensors broadcast against each other; their sizes come where the first one "
           "stood, or in front if they are not adjacent. Bool masks are refused: their result size "
           "depends on data.",
};

} // namespace cgc::ir

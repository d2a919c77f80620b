// aten.index: advanced indexing with tensors.
#include "ir/ops/index_rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(Dims sizes, rules::indexedSizes(args));
  return rules::addDense(results, args.tensor("self").dtype, sizes);
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

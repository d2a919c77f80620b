// aten.pdist: distances between the rows of a matrix.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferPdist(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  if (self.rank() != 2 || !isFloating(self.dtype))
    return rules::mismatch("self", "[N, M] of a floating dtype", self);
  if (!(args.number("p") >= 0))
    return rules::refuse("expected 'p' to be at least 0");
  const int64_t rows = self.sizes[0];
  if (rows > int64_t(1) << 31) // The product below does not overflow.
    return rules::mismatch("self", "of fewer rows", self);
  return rules::addDense(results, self.dtype, {rows == 0 ? 0 : rows * (rows - 1) / 2});
}

} // namespace

const OpDef defs::Pdist = {
    .schema = "(Tensor self, float p=2.0) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferPdist,
    .aten = "copy aten::pdist",
    .doc = "The p-norms of the differences of each pair of rows of self [N, M], in the order "
           "(0,1), (0,2), ..., (1,2), ...: [N * (N - 1) / 2].",
};

} // namespace cgc::ir

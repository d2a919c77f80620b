// aten.linalg_vector_norm: vector norm over dimensions.
#include "ir/ops/batch_rules.h"
#include "ir/ops/rules.h"

#include <cmath>

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(auto reduced, rules::listedDims(args, "dim", self.rank()));
  if (!isFloating(self.dtype))
    return rules::mismatch("self", "of a floating dtype", self);
  DType dtype = args.isNone("dtype") ? self.dtype : args.dtype("dtype");
  if (rules::promote(dtype, self.dtype) != dtype)
    return rules::refuse("expected 'dtype' to be floating and at least as wide as " +
                         std::string(dtypeName(self.dtype)) + ", got " +
                         std::string(dtypeName(dtype)));
  double ord = args.number("ord");
  for (int64_t d = 0; d < self.rank(); ++d)
    if (reduced[d] && self.sizes[d] == 0 && (ord < 0 || std::isinf(ord)))
      return rules::mismatch("self", "nonempty in every reduced dimension for this 'ord'", self);
  return rules::addDense(results, dtype,
                         rules::reducedSizes(self.sizes, reduced, args.boolean("keepdim")));
}

} // namespace

const OpDef defs::VectorNorm = {
    .schema = "(Tensor self, number ord=2, int[]? dim=none, bool keepdim=false, dtype? dtype=none) "
              "-> Tensor",
    .traits = kPure | kReduction,
    .infer = infer,
    .batch = batch::reduction,
    .doc =
        "The ord-norm over the listed dimensions, or over all if there are none; floating dtypes.",
};

} // namespace cgc::ir

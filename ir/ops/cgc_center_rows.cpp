// cgc.center_rows: a weight whose rows sum to nothing.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &weight = args.tensor("weight");
  if (weight.rank() != 2 || !isFloating(weight.dtype))
    return rules::mismatch("weight", "[N, K] of a floating dtype", weight);
  const DType dtype = args.dtype("dtype");
  if (!isFloating(dtype))
    return rules::refuse("expected 'dtype' to be floating, got " +
                         llvm::Twine(llvm::StringRef(dtypeName(dtype))));
  return rules::addDense(results, dtype, weight.sizes);
}

} // namespace

const OpDef defs::CenterRows = {
    .schema = "(Tensor weight, dtype dtype) -> Tensor",
    .traits = kPure,
    .infer = infer,
    .evaluate = nullptr,
    .doc =
        "weight [N, K] with each row less its mean, rounded to dtype. What the rounded elements "
        "of a row sum to is taken off the first 8 of them, in equal parts: what is left is about "
        "one unit of an element's last place. Floating dtypes.",
};

} // namespace cgc::ir

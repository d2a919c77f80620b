// cgc.center_rows: a weight whose rows sum to nothing.
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &weight = args.tensor("weight");
  if (weight.rank() != 2 || weight.dtype != DType::F32)
    return rules::mismatch("weight", "f32[N,K]", weight);
  const DType dtype = args.dtype("dtype");
  if (dtype != DType::F16 && dtype != DType::BF16)
    return rules::refuse("expected 'dtype' to be f16 or bf16, got " +
                         llvm::Twine(llvm::StringRef(dtypeName(dtype))));
  return rules::addDense(results, DType::F32, weight.sizes);
}

} // namespace

const OpDef defs::CenterRows = {
    .schema = "(Tensor weight, dtype dtype) -> Tensor",
    .traits = kPure,
    .infer = infer,
    .evaluate = nullptr,
    .doc = "weight, f32 [N, K], with each row less its mean, as numbers that dtype, f16 or bf16, "
           "holds: some are rounded away from what is nearest, so that rows sum to nearly 0. For "
           "constants, which the pass fold computes; lowered, it takes off the mean alone.",
};

} // namespace cgc::ir

// cgc.norm_linear: a linear of normalised rows.
#include "ir/ops/linear_rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(Dims sizes, rules::fusedLinear(args));
  const TensorType &sums = args.tensor("column_sums");
  if (sums.dtype != DType::F32 || llvm::ArrayRef(sums.sizes) != llvm::ArrayRef({sizes.back()}))
    return rules::mismatch("column_sums", "f32[" + llvm::Twine(sizes.back()) + "]", sums);
  return rules::addDense(results, args.tensor("input").dtype, sizes);
}

} // namespace

const OpDef defs::NormLinear = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias, Tensor column_sums, float eps=1e-05, "
              "str activation=\"none\") -> Tensor",
    .traits = kPure,
    .infer = infer,
    .evaluate = nullptr,
    .doc = "activation(the rows of input [..., K] with zero mean and unit variance, times the "
           "transpose of weight [N, K], plus bias [N]): [..., N]. column_sums, f32 [N], is the sum "
           "of each row of weight: with it the mean can be taken off after the product. "
           "activation as in cgc.linear. Floating dtypes.",
};

} // namespace cgc::ir

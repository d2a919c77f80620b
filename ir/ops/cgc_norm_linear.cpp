// cgc.norm_linear: a linear of normalized rows.
#include "ir/ops/linear_rules.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(Dims sizes, rules::fusedLinear(args));
  return rules::addDense(results, args.tensor("input").dtype, sizes);
}

} // namespace

const OpDef defs::NormLinear = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias, float eps=1e-05, str "
              "activation=\"none\") -> Tensor",
    .traits = kPure | kGemm,
    .infer = infer,
    .doc = "activation(rows of input [..., K] normalized to zero mean and unit variance, times the "
           "transpose of weight [N, K], plus bias [N]): [..., N]. Each row of weight must sum to "
           "0, as those of cgc.center_rows do: the mean of an input row then contributes nothing "
           "and need not be subtracted. activation as in cgc.linear. Floating dtypes.",
};

} // namespace cgc::ir

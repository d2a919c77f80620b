// cgc.norm_linear: a linear of normalised rows.
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
    .traits = kPure,
    .infer = infer,
    .evaluate = nullptr,
    .doc = "activation(the rows of input [..., K] with zero mean and unit variance, times the "
           "transpose of weight [N, K], plus bias [N]): [..., N]. Rows of weight have to sum to 0, "
           "as those of cgc.center_rows: means of input then add nothing, and need not be taken "
           "off. activation as in cgc.linear. Floating dtypes.",
};

} // namespace cgc::ir

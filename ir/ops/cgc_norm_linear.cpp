// cgc.norm_linear: a linear of normalized rows.
#include "ir/ops/linear_rules.h"
#include "ir/ops/row_statistics_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcNormLinear(const InferArgs &args, rules::Results &results) {
  CGC_ASSIGN_OR_RETURN(Dims sizes, rules::fusedLinear(args));
  if (!args.isNone("input_statistics")) {
    const TensorType &statistics = args.tensor("input_statistics");
    const Dims expected = rules::rowStatisticsSizes(args.tensor("input").sizes);
    if (statistics.dtype != DType::F32 || statistics.sizes != expected)
      return rules::mismatch("input_statistics",
                             "f32" + rules::toString(expected) + ", the row statistics of 'input'",
                             statistics);
  }
  CGC_TRY(rules::addDense(results, args.tensor("input").dtype, sizes));
  return rules::addRowStatistics(args, results);
}

Result<Values> defineCgcNormLinear(OpBuilder &b) {
  Value *input = b.input("input");
  Value *rows = b.call(OpKind::LayerNorm, {input, Arg::ints(Dims{input->tensor().sizes.back()}),
                                           Arg(), Arg(), b.arg("eps")});
  Node *linear =
      b.callNode(OpKind::CgcLinear, {rows, b.arg("weight"), b.arg("bias"), Arg(),
                                     b.arg("activation"), b.arg("row_statistics"), false});
  Values values;
  for (Value &result : linear->results())
    values.push_back(&result);
  return values;
}

} // namespace

const OpDef defs::CgcNormLinear = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias, Tensor? input_statistics=none, float "
              "eps=1e-05, str activation=\"none\", bool row_statistics=false) -> (Tensor, Tensor?)",
    .traits = kPure | kGemm,
    .infer = inferCgcNormLinear,
    .decompose = defineCgcNormLinear,
    .doc = "activation(rows of input [..., K] normalized to zero mean and unit variance, times the "
           "transpose of weight [N, K], plus bias [N]): [..., N]. Each row of weight must sum to "
           "0, as those of cgc.center_rows do: the mean of an input row then contributes nothing "
           "and need not be subtracted. activation and row_statistics as in cgc.linear. "
           "input_statistics are the row statistics of input, as the op that computes input gives "
           "them: with or without them the op computes the same. Floating dtypes.",
};

} // namespace cgc::ir

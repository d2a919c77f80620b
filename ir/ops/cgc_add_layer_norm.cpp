// cgc.add_layer_norm: a sum and its layer normalization, computed in f32.
#include "ir/ops/normalization_rules.h"
#include "ir/ops/row_statistics_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcAddLayerNorm(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input");
  if (input.rank() < 1 || !isFloating(input.dtype))
    return rules::mismatch("input", "[..., E] of a floating dtype", input);
  CGC_TRY(rules::sameDType(args, "input", {"addend"}));
  if (!args.isNone("addend")) {
    const TensorType &addend = args.tensor("addend");
    if (addend.rank() < 1 || addend.rank() > input.rank() ||
        llvm::ArrayRef(input.sizes).take_back(addend.rank()) != llvm::ArrayRef(addend.sizes))
      return rules::mismatch("addend", "the last dimensions of " + rules::toString(input.sizes),
                             addend);
  }
  CGC_TRY(rules::rowNormParameters(args, {"weight", "bias"}));
  CGC_TRY(rules::addDense(results, input.dtype, input.sizes));
  CGC_TRY(rules::addDense(results, input.dtype, input.sizes));
  return rules::addRowStatistics(args, results);
}

Result<Values> defineCgcAddLayerNorm(OpBuilder &b) {
  Value *input = b.input("input"), *addend = b.input("addend");
  Value *sum = addend ? b.add(input, addend) : input;
  Values values{sum, rules::rowNorm(b, sum, "weight", "bias", "eps")};
  rules::defineRowStatistics(b, values);
  return values;
}

} // namespace

const OpDef defs::CgcAddLayerNorm = {
    .schema = "(Tensor input, Tensor? addend=none, Tensor? weight=none, Tensor? bias=none, float "
              "eps=1e-05, bool row_statistics=false) -> (Tensor, Tensor, Tensor?)",
    .traits = kPure | kReduction,
    .infer = inferCgcAddLayerNorm,
    .rowArgs =
        [](const InferArgs &args) {
          // Row statistics have the rows of all sequences in one dimension.
          return args.boolean("row_statistics") ? RowArgs() : RowArgs{"input", "addend"};
        },
    .decompose = defineCgcAddLayerNorm,
    .doc = "Two results. The first is input [..., E] plus addend, whose sizes are the last ones of "
           "input's, or input itself without an addend. The second is that sum, rounded to its "
           "dtype and normalized to zero mean and unit variance over the last dimension, times "
           "weight [E], plus bias [E], rounded once. weight and bias are of input's dtype or f32. "
           "With row_statistics, the third is the row statistics of the second, as in cgc.linear.",
};

} // namespace cgc::ir

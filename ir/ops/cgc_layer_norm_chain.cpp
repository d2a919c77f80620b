// cgc.layer_norm_chain: one or two layer normalizations of rows, and an activation.
#include "ir/ops/linear_rules.h"
#include "ir/ops/normalization_rules.h"

namespace cgc::ir {
namespace {

Status inferCgcLayerNormChain(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input");
  if (input.rank() < 1 || !isFloating(input.dtype))
    return rules::mismatch("input", "[..., E] of a floating dtype", input);
  CGC_TRY(rules::rowNormParameters(args, {"weight", "bias", "next_weight", "next_bias"}));
  if (args.isNone("next_eps"))
    for (llvm::StringRef name : {"next_weight", "next_bias"})
      if (!args.isNone(name))
        return rules::refuse("expected '" + name + "' to be none, as 'next_eps'");
  CGC_TRY(rules::checkActivation(args));
  return rules::addDense(results, input.dtype, input.sizes);
}

Result<Values> defineCgcLayerNormChain(OpBuilder &b) {
  Value *rows = rules::rowNorm(b, b.input("input"), "weight", "bias", "eps");
  if (!b.args().isNone("next_eps"))
    rows = rules::rowNorm(b, rows, "next_weight", "next_bias", "next_eps");
  return Values{rules::activated(b, rows, b.args().str("activation"))};
}

} // namespace

const OpDef defs::CgcLayerNormChain = {
    .schema = "(Tensor input, Tensor? weight=none, Tensor? bias=none, Tensor? next_weight=none, "
              "Tensor? next_bias=none, float eps=1e-05, float? next_eps=none, str "
              "activation=\"none\") -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferCgcLayerNormChain,
    .rowArgs = [](const InferArgs &) { return RowArgs{"input"}; },
    .decompose = defineCgcLayerNormChain,
    .doc = "activation(norm(input [..., E])), where norm is that of cgc.add_layer_norm. With "
           "next_eps, rows are normalized again, with next_weight [E] and next_bias [E]. Each norm "
           "and the activation, one of cgc.linear, round to input's dtype.",
};

} // namespace cgc::ir

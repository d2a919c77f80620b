// cgc.linear: linear with an activation and a residual.
#include "ir/ops/rules.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace cgc::ir {
namespace {

constexpr llvm::StringRef kActivations[] = {"none", "gelu", "gelu_tanh", "quick_gelu",
                                            "silu", "relu", "tanh"};

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input"), &weight = args.tensor("weight");
  if (input.rank() < 1 || !isFloating(input.dtype))
    return rules::mismatch("input", "[..., K] of a floating dtype", input);
  if (weight.rank() != 2 || weight.sizes[1] != input.sizes.back())
    return rules::mismatch(
        "weight", "[N, " + llvm::Twine(input.sizes.back()) + "], as the last dimension of 'input'",
        weight);
  CGC_TRY(rules::sameDType(args, "input", {"weight", "bias", "residual"}));
  Dims sizes(llvm::ArrayRef(input.sizes).drop_back());
  sizes.push_back(weight.sizes[0]);
  if (!args.isNone("bias") &&
      llvm::ArrayRef(args.tensor("bias").sizes) != llvm::ArrayRef({weight.sizes[0]}))
    return rules::mismatch("bias", "[" + llvm::Twine(weight.sizes[0]) + "]", args.tensor("bias"));
  if (!args.isNone("residual") && args.tensor("residual").sizes != sizes)
    return rules::mismatch("residual", rules::toString(sizes), args.tensor("residual"));
  if (!llvm::is_contained(kActivations, args.str("activation")))
    return rules::refuse("expected 'activation' to be one of " +
                         llvm::join(llvm::ArrayRef(kActivations), ", ") + ", got \"" +
                         args.str("activation") + "\"");
  return rules::addDense(results, input.dtype, sizes);
}

} // namespace

const OpDef defs::FusedLinear = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias=none, Tensor? residual=none, str "
              "activation=\"none\") -> Tensor",
    .traits = kPure,
    .infer = infer,
    .evaluate = nullptr,
    .doc = "activation(input [..., K] times the transpose of weight [N, K], plus bias [N]) plus "
           "residual [..., N]: [..., N]. activation is none, gelu, gelu_tanh, quick_gelu, silu, "
           "relu or tanh. Floating dtypes.",
};

} // namespace cgc::ir

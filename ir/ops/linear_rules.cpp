// linear_rules: the type rule of fused linears, and activations.
#include "ir/ops/linear_rules.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace cgc::ir::rules {

static constexpr llvm::StringRef kActivations[] = {"none", "gelu", "gelu_tanh", "quick_gelu",
                                                   "silu", "relu", "tanh"};

Result<Dims> fusedLinear(const InferArgs &args) {
  const TensorType &input = args.tensor("input"), &weight = args.tensor("weight");
  if (input.rank() < 1 || !isFloating(input.dtype))
    return mismatch("input", "[..., K] of a floating dtype", input);
  if (weight.rank() != 2 || weight.sizes[1] != input.sizes.back())
    return mismatch(
        "weight", "[N, " + llvm::Twine(input.sizes.back()) + "], as the last dimension of 'input'",
        weight);
  CGC_TRY(sameDType(args, "input", {"weight", "bias"}));
  if (!args.isNone("bias") &&
      llvm::ArrayRef(args.tensor("bias").sizes) != llvm::ArrayRef({weight.sizes[0]}))
    return mismatch("bias", "[" + llvm::Twine(weight.sizes[0]) + "]", args.tensor("bias"));
  CGC_TRY(checkActivation(args));
  Dims sizes(llvm::ArrayRef(input.sizes).drop_back());
  sizes.push_back(weight.sizes[0]);
  return sizes;
}

Status checkActivation(const InferArgs &args) {
  if (llvm::is_contained(kActivations, args.str("activation")))
    return Status::ok();
  return refuse("expected 'activation' to be one of " +
                llvm::join(llvm::ArrayRef(kActivations), ", ") + ", got \"" +
                args.str("activation") + "\"");
}

Value *activated(OpBuilder &b, Value *x, llvm::StringRef activation) {
  if (activation == "none")
    return x;
  if (activation == "gelu_tanh")
    return b.call(OpKind::Gelu, {x, "tanh"});
  const OpKind op = llvm::StringSwitch<OpKind>(activation)
                        .Case("gelu", OpKind::Gelu)
                        .Case("quick_gelu", OpKind::CgcQuickGelu)
                        .Case("silu", OpKind::Silu)
                        .Case("relu", OpKind::Relu)
                        .Case("tanh", OpKind::Tanh);
  return b.callNode(op, {x})->result();
}

} // namespace cgc::ir::rules

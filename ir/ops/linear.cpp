// aten.linear: affine map of the last dimension.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferLinear(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input"), &weight = args.tensor("weight");
  if (input.rank() < 1)
    return rules::mismatch("input", "of rank 1 or more", input);
  if (input.dtype == DType::Bool)
    return rules::mismatch("input", "of a numeric dtype", input);
  if (weight.rank() != 1 && weight.rank() != 2)
    return rules::mismatch("weight", "of rank 1 or 2", weight);
  if (weight.sizes.back() != input.sizes.back())
    return rules::mismatch(
        "weight",
        "[..., " + llvm::Twine(input.sizes.back()) + "], as the last dimension of 'input'", weight);
  CGC_TRY(rules::sameDType(args, "input", {"weight", "bias"}));
  Dims sizes(llvm::ArrayRef(input.sizes).drop_back());
  if (weight.rank() == 2)
    sizes.push_back(weight.sizes[0]);
  if (!args.isNone("bias")) {
    const TensorType &bias = args.tensor("bias");
    if (weight.rank() != 2 || bias.rank() != 1 || bias.sizes[0] != weight.sizes[0])
      return rules::mismatch("bias", "[N] for a 'weight' [N, K]", bias);
  }
  return rules::addDense(results, input.dtype, sizes);
}

Status backwardLinear(GradientBuilder &b) {
  Value *input = b.input("input"), *weight = b.input("weight"), *grad = b.grad();
  b.set("bias", grad);
  if (weight->tensor().rank() == 1) { // [...] = [..., K] times [K].
    grad = b.call(OpKind::Unsqueeze, {grad, -1});
    if (b.needs("input"))
      b.set("input", b.mul(grad, weight));
    if (b.needs("weight"))
      b.set("weight", b.mul(grad, input));
    return Status::ok();
  }
  if (b.needs("input"))
    b.set("input", b.matmul(grad, weight));
  if (b.needs("weight"))
    b.set("weight", b.call(OpKind::CgcWeightGradient, {grad, input, grad->tensor().dtype}));
  return Status::ok();
}

} // namespace

const OpDef defs::Linear = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias=none) -> Tensor",
    .traits = kPure | kGemm,
    .infer = inferLinear,
    .readsStrides =
        [](const InferArgs &, llvm::StringRef name, const TensorType &type) {
          return name == "input" && type.rank() > 0 && hasDenseRows(type, 1);
        },
    .rowArgs =
        [](const InferArgs &args) {
          return args.tensor("weight").rank() == 2 ? RowArgs{"input"} : RowArgs();
        },
    .batch = batch::linear,
    .gradient = backwardLinear,
    .doc = "input [..., K] times the transpose of weight [N, K], plus bias [N]: [..., N]. A weight "
           "[K] gives [...].",
};

} // namespace cgc::ir

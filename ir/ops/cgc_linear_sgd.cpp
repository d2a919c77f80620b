// cgc.linear_sgd: one step of stochastic gradient descent for a linear layer.
#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferCgcLinearSgd(const InferArgs &args, rules::Results &results) {
  const TensorType &weight = args.tensor("weight"), &grad = args.tensor("grad_out"),
                   &input = args.tensor("input"), &lr = args.tensor("lr");
  if (!isFloating(weight.dtype) || weight.rank() != 2)
    return rules::mismatch("weight", "[N, K] of a floating dtype", weight);
  CGC_TRY(rules::sameDType(args, "weight", {"bias", "grad_out", "input"}));
  const int64_t n = weight.sizes[0], k = weight.sizes[1];
  if (input.rank() < 1 || input.sizes.back() != k)
    return rules::mismatch("input", "[..., K], for the 'weight' [N, K]", input);
  if (grad.rank() != input.rank() || grad.sizes.back() != n ||
      llvm::ArrayRef(grad.sizes).drop_back() != llvm::ArrayRef(input.sizes).drop_back())
    return rules::mismatch("grad_out", "[..., N] with the rows of 'input'", grad);
  if (lr.rank() != 0 || !isFloating(lr.dtype))
    return rules::mismatch("lr", "of a floating dtype, without dimensions", lr);
  CGC_TRY(rules::addDense(results, weight.dtype, weight.sizes));
  if (!args.isNone("bias")) {
    if (args.tensor("bias").sizes != Dims{n})
      return rules::mismatch("bias", "[N], for the 'weight' [N, K]", args.tensor("bias"));
    CGC_TRY(rules::addDense(results, weight.dtype, {n}));
  }
  if (args.isNone("step"))
    return Status::ok();
  if (const TensorType &step = args.tensor("step"); step.rank() != 0 || step.dtype != DType::I64)
    return rules::mismatch("step", "i64[]", step);
  return rules::addDense(results, DType::I64, {});
}

Result<Values> defineCgcLinearSgd(OpBuilder &b) {
  Value *weight = b.input("weight"), *bias = b.input("bias");
  Node *gradients =
      b.callNode(OpKind::CgcWeightGradient,
                 {b.arg("grad_out"), b.arg("input"), weight->tensor().dtype, bias != nullptr});
  Arg::List parameters = {weight}, gradientList = {gradients->result(0)};
  if (bias) {
    parameters.emplace_back(bias);
    gradientList.emplace_back(gradients->result(1));
  }
  // The number of the step is read with a momentum only.
  Value *step = b.input("step");
  Arg number = step ? step : b.call(OpKind::Full, {Arg::ints(Dims{}), 1, DType::I64});
  Node *update = b.callNode(OpKind::CgcSgd, {std::move(parameters), std::move(gradientList),
                                             Arg::List{}, b.arg("lr"), std::move(number), Arg(),
                                             Arg(), 0.0, 0.0, b.arg("weight_decay")});
  Values results;
  for (Value &result : update->results())
    results.push_back(&result);
  if (step)
    results.push_back(b.add(step, 1));
  return results;
}

} // namespace

const OpDef defs::CgcLinearSgd = {
    .schema = "(Tensor weight, Tensor? bias, Tensor grad_out, Tensor input, Tensor lr, Tensor? "
              "step=none, float weight_decay=0.0) -> Tensor[]",
    .traits = kPure | kGemm,
    .infer = inferCgcLinearSgd,
    .decompose = defineCgcLinearSgd,
    .doc =
        "cgc.sgd, without a momentum, of the gradients of cgc.weight_gradient: the results are "
        "weight - lr * (grad_out^T input + weight_decay * weight) and, with a bias, the bias less "
        "lr * (the sum of grad_out over all rows + weight_decay * bias); then, with step, the "
        "number of the step before, step + 1. weight is [N, K], bias [N], grad_out [..., N] and "
        "input [..., K], of one floating dtype.",
};

} // namespace cgc::ir

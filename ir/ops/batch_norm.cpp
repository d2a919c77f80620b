// aten.batch_norm: batch normalization with running statistics.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {
namespace {

Status inferBatchNorm(const InferArgs &args, rules::Results &results) {
  const TensorType &input = args.tensor("input");
  if (args.boolean("training"))
    return rules::refuse(
        "expected 'training' to be false: cgc compiles for inference; call eval() before tracing");
  if (input.rank() < 2 || !isFloating(input.dtype))
    return rules::mismatch("input", "[N, C, ...] of a floating dtype", input);
  int64_t channels = input.sizes[1];
  for (llvm::StringRef name : {"running_mean", "running_var", "weight", "bias"}) {
    if (args.isNone(name)) {
      if (name.starts_with("running"))
        return rules::refuse("expected '" + name + "', got none: without training it is needed");
      continue;
    }
    const TensorType &parameter = args.tensor(name);
    if (parameter.rank() != 1 || parameter.sizes[0] != channels)
      return rules::mismatch(name, "[" + llvm::Twine(channels) + "], as the channels of 'input'",
                             parameter);
    if (channels == 0 && !name.starts_with("running")) // As in LibTorch, which reads element 0.
      return rules::mismatch(name, "none for an 'input' without channels", parameter);
  }
  CGC_TRY(rules::sameDType(args, "input", {"weight", "bias", "running_mean", "running_var"}));
  return rules::addDense(results, input.dtype, input.sizes);
}

/// The running statistics get no gradient, as in LibTorch.
Status backwardBatchNorm(GradientBuilder &b) {
  const auto [sizes, others] = rules::channelsOf(b.input("input")->tensor());
  const auto channels = [&](Value *value) { return b.reshape(value, sizes); };
  Value *scale = b.call(OpKind::Rsqrt, {b.add(b.arg("running_var"), b.number("eps"))});
  if (b.needs("input")) {
    Value *factor = b.input("weight") ? b.mul(scale, b.arg("weight")) : scale;
    b.set("input", b.mul(b.grad(), channels(factor)));
  }
  if (b.needs("weight")) {
    Value *centered = b.sub(b.arg("input"), channels(b.input("running_mean")));
    Value *sum = b.sum(b.mul(b.grad(), centered), others, /*keepDim=*/false);
    b.set("weight", b.mul(sum, scale));
  }
  if (b.needs("bias"))
    b.set("bias", b.sum(b.grad(), others, /*keepDim=*/false));
  return Status::ok();
}

} // namespace

const OpDef defs::BatchNorm = {
    .schema = "(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
              "running_var, bool training, float momentum, float eps) -> Tensor",
    .traits = kPure | kReduction,
    .infer = inferBatchNorm,
    .aten = "copy aten::batch_norm(..., true)",
    .batch =
        [](const BatchCall &call) {
          batch::Join join(call);
          join.add(call.args["input"], batch::broadcast(call.result(), call.result()));
          for (llvm::StringRef name : {"weight", "bias", "running_mean", "running_var"})
            join.add(call.args[name], {1}); // The channels.
          return join.state();
        },
    .gradient = backwardBatchNorm,
    .doc = "(input - running_mean) / sqrt(running_var + eps) * weight + bias for input [N, C, "
           "...]; all others [C]. Without channels, weight and bias must be none. Only "
           "training=false.",
};

} // namespace cgc::ir

// cgc.linear_sgd: on cuda the small GEMM in f32 that updates the weight; else the gradients, and
// cgc.sgd.
#include "backend/ops/lower_optimizer.h"
#include "backend/ops/lower_weight_gradient.h"

namespace cgc::backend {

Status lowerLinearSgd(const ir::Node &node, BucketBuilder &builder) {
  TensorMath math(builder);
  const Place weight = builder.place(node.arg("weight").value()),
              lr = builder.place(node.arg("lr").value());
  const std::optional<Place> bias = builder.optionalPlace(node.arg("bias")),
                             step = builder.optionalPlace(node.arg("step"));
  const double decay = *node.arg("weight_decay").asNumber();
  std::vector<Place> results;
  for (const ir::Value &result : node.results())
    results.push_back(builder.allocate(result));
  const Place &newWeight = results[0];
  const auto newBias = bias ? std::optional(results[1]) : std::nullopt,
             nextStep = step ? std::optional(results.back()) : std::nullopt;

  const WeightGradientOperands operands = weightGradientOperands(node, builder);
  if (lowerSmallGemm(operands.gemm(newWeight, newBias), builder,
                     SmallGemmUpdate{.weight = weight,
                                     .bias = bias,
                                     .lr = math.converted(lr, DType::F32),
                                     .weightDecay = decay,
                                     .step = step,
                                     .nextStep = nextStep}))
    return Status::ok();

  const auto gradientOf = [&](const Place &parameter) {
    return builder.temporary(parameter.dtype, parameter.sizes);
  };
  const Place gradient = gradientOf(weight);
  const auto biasGradient = bias ? std::optional(gradientOf(*bias)) : std::nullopt;
  lowerWeightGradient(operands, gradient, biasGradient, builder);
  OptimizerStep update{.gradients = {flatPlace(gradient, builder)},
                       .values = {{flatPlace(weight, builder)}},
                       .results = {{flatPlace(newWeight, builder)}},
                       .copies = {},
                       .lr = lr,
                       .step =
                           step ? *step : math.number(int64_t{1})}; // Read with a momentum only.
  if (bias) {
    update.gradients.push_back(*biasGradient);
    update.values[0].push_back(*bias);
    update.results[0].push_back(*newBias);
  }
  lowerSgd(update, {.momentum = 0, .dampening = 0, .weightDecay = decay, .isNesterov = false},
           builder);
  if (step && !launchElementwise(ElementwiseOp::Add, *step, std::nullopt, 1, *nextStep, builder))
    math.add(*step, math.number(int64_t{1}), 1, nextStep);
  return Status::ok();
}

} // namespace cgc::backend

// cgc.adam: one kernel for all f32 parameters on cuda; else LibTorch's arithmetic, tensor by
// tensor, in the order of torch.optim.Adam.
#include "backend/ops/lower_optimizer.h"

namespace cgc::backend {
namespace {

enum List : size_t { kParameters, kMeans, kSquares };

} // namespace

Status lowerAdam(const ir::Node &node, BucketBuilder &builder) {
  const auto number = [&](llvm::StringRef name) { return *node.arg(name).asNumber(); };
  const double beta1 = number("beta1"), beta2 = number("beta2"), decay = number("weight_decay");
  const bool decoupled = node.arg("decoupled").as<bool>();
  TensorMath math(builder);
  const OptimizerStep step =
      optimizerStep(node, {"parameters", "exp_avgs", "exp_avg_sqs"}, builder);
  const double epsilon = number("eps");
  const std::vector<size_t> rest = launchOptimizer("adam_f32", step, {int64_t{decoupled}},
                                                   {beta1, beta2, epsilon, decay}, builder);
  if (rest.empty())
    return Status::ok();

  // What depends on the step and not on the parameter is a number in f64, as in Python.
  const Place one = math.number(1.0, DType::F64), eps = math.number(epsilon, DType::F64),
              keptShare = math.number(beta2, DType::F64);
  const Place lr = math.converted(step.lr, DType::F64),
              count = math.converted(step.step, DType::F64);
  const auto correction = [&](double beta) { return math.sub(one, math.power(beta, count)); };
  const Place stepSize = math.div(lr, correction(beta1));
  const Place squareRoot = math.sqrt(correction(beta2));
  std::optional<Place> shrink;
  if (decay != 0 && decoupled)
    shrink = math.sub(one, math.mul(lr, math.number(decay, DType::F64)));

  for (size_t i : rest) {
    Place parameter = step.values[kParameters][i], gradient = scaledGradient(step, i, math);
    if (shrink)
      parameter = math.mul(parameter, *shrink);
    else if (decay != 0)
      gradient = math.add(gradient, parameter, decay);
    const Place mean =
        math.lerp(step.values[kMeans][i], gradient, 1 - beta1, newValue(step, kMeans, i, builder));
    const Place kept = math.mul(step.values[kSquares][i], keptShare);
    const Place square =
        math.addcmul(kept, gradient, gradient, 1 - beta2, newValue(step, kSquares, i, builder));
    const Place root = math.div(math.sqrt(square), squareRoot);
    const Place change = math.div(math.mul(mean, stepSize), math.add(root, eps));
    const Place value = math.sub(parameter, change, newValue(step, kParameters, i, builder));
    keepIfSkipped(step, kParameters, i, value, math);
    keepIfSkipped(step, kMeans, i, mean, math);
    keepIfSkipped(step, kSquares, i, square, math);
    writeCopy(step, i, builder);
  }
  return Status::ok();
}

} // namespace cgc::backend

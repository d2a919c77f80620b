// cgc.sgd: one kernel for all f32 parameters on cuda; else LibTorch's arithmetic, tensor by tensor,
// in the order of torch.optim.SGD.
#include "backend/ops/lower_optimizer.h"

namespace cgc::backend {

void lowerSgd(const OptimizerStep &step, const SgdNumbers &numbers, BucketBuilder &builder) {
  const auto &[momentum, dampening, decay, nesterov] = numbers;
  TensorMath math(builder);
  const std::vector<size_t> rest =
      launchOptimizer("sgd_f32", step, {int64_t{nesterov}}, {momentum, dampening, decay}, builder);
  if (rest.empty())
    return;
  std::optional<Place> isFirst, factor;
  if (momentum != 0) {
    isFirst = math.equal(step.step, 1);
    factor = math.number(momentum, DType::F64);
  }
  for (size_t i : rest) {
    const Place &parameter = step.values[0][i];
    Place gradient = scaledGradient(step, i, math);
    if (decay != 0)
      gradient = math.add(gradient, parameter, decay);
    if (momentum != 0) {
      const Place kept = math.mul(step.values[1][i], *factor);
      const Place moved = math.add(kept, gradient, 1 - dampening);
      const Place mean = math.where(*isFirst, gradient, moved, newValue(step, 1, i, builder));
      keepIfSkipped(step, 1, i, mean, math);
      gradient = nesterov ? math.add(gradient, mean, momentum) : mean;
    }
    const Place value =
        math.sub(parameter, math.mul(gradient, step.lr), newValue(step, 0, i, builder));
    keepIfSkipped(step, 0, i, value, math);
    writeCopy(step, i, builder);
  }
}

Status lowerSgd(const ir::Node &node, BucketBuilder &builder) {
  const SgdNumbers numbers = {*node.arg("momentum").asNumber(), *node.arg("dampening").asNumber(),
                              *node.arg("weight_decay").asNumber(),
                              node.arg("nesterov").as<bool>()};
  lowerSgd(numbers.momentum == 0 ? optimizerStep(node, {"parameters"}, builder)
                                 : optimizerStep(node, {"parameters", "momenta"}, builder),
           numbers, builder);
  return Status::ok();
}

} // namespace cgc::backend

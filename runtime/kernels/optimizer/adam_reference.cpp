// Reference of adam_f32.
#include "runtime/kernels/optimizer/adam.h"
#include "runtime/kernels/optimizer/reference_groups.h"

#include <cmath>

namespace cgc::reference {
namespace {

void adam(const ReferenceArguments &a) {
  const auto [beta1, beta2, eps, weightDecay, isDecoupled] = AdamNumbers::of(a.ints, a.floats);
  const StepOperands step(a);
  const auto correction = [&](double beta) { return 1 - std::pow(beta, double(step.number)); };
  const auto shrink = static_cast<float>(isDecoupled ? 1 - step.lr * weightDecay : 1.0),
             decay = static_cast<float>(isDecoupled ? 0 : weightDecay),
             stepSize = static_cast<float>(step.lr / correction(beta1)),
             squareRoot = static_cast<float>(std::sqrt(correction(beta2))),
             weight1 = static_cast<float>(1 - beta1), rest1 = static_cast<float>(beta1),
             weight2 = static_cast<float>(1 - beta2);
  forGroups(a, kAdamShape, step.skips, [&](const Element &at) {
    const float parameter = at.read(0);
    float g = at.read(1) * step.scale;
    if (decay != 0)
      g += decay * parameter;
    const float mean = lerp(at.read(2), g, weight1, rest1);
    const float square = at.read(3) * float(beta2) + weight2 * g * g;
    const float root = std::sqrt(square) / squareRoot + float(eps);
    at.write(0, parameter * shrink - stepSize * mean / root);
    at.write(1, mean);
    at.write(2, square);
  });
}

} // namespace

CGC_REFERENCE(adam_f32, adam)

} // namespace cgc::reference

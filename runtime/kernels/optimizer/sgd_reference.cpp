// Reference of sgd_f32.
#include "runtime/kernels/optimizer/reference_groups.h"
#include "runtime/kernels/optimizer/sgd.h"

namespace cgc::reference {
namespace {

void sgd(const ReferenceArguments &a) {
  const SgdNumbers numbers = SgdNumbers::of(a.ints, a.floats);
  const StepOperands step(a);
  const auto lr = static_cast<float>(step.lr), factor = static_cast<float>(numbers.momentum),
             share = static_cast<float>(1 - numbers.dampening),
             decay = static_cast<float>(numbers.weightDecay);
  forGroups(a, kSgdShape, step.skips, [&](const Element &at) {
    const float parameter = at.read(0);
    float g = at.read(1) * step.scale;
    if (decay != 0)
      g += decay * parameter;
    if (numbers.momentum != 0) {
      const float momentum = step.number == 1 ? g : factor * at.read(2) + share * g;
      at.write(1, momentum);
      g = numbers.isNesterov ? g + factor * momentum : momentum;
    }
    at.write(0, parameter - lr * g);
  });
}

} // namespace

CGC_REFERENCE(sgd_f32, sgd)

} // namespace cgc::reference

// cgc.sgd: one kernel for all parameters on cuda.
#include "backend/ops/lower_optimizer.h"

namespace cgc::backend {

Result<bool> launchSgd(const ir::Node &node, BucketBuilder &builder) {
  const auto number = [&](llvm::StringRef name) { return *node.arg(name).asNumber(); };
  const double momentum = number("momentum");
  const OptimizerStep step = momentum == 0
                                 ? optimizerStep(node, {"parameters"}, builder)
                                 : optimizerStep(node, {"parameters", "momenta"}, builder);
  return launchOptimizer("sgd_f32", step, {int64_t{node.arg("nesterov").as<bool>()}},
                         {momentum, number("dampening"), number("weight_decay")}, builder);
}

} // namespace cgc::backend

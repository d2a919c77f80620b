// cgc.adam: one kernel for all parameters on cuda.
#include "backend/ops/lower_optimizer.h"

namespace cgc::backend {

Result<bool> launchAdam(const ir::Node &node, BucketBuilder &builder) {
  const auto number = [&](llvm::StringRef name) { return *node.arg(name).asNumber(); };
  return launchOptimizer(
      "adam_f32", optimizerStep(node, {"parameters", "exp_avgs", "exp_avg_sqs"}, builder),
      {int64_t{node.arg("decoupled").as<bool>()}},
      {number("beta1"), number("beta2"), number("eps"), number("weight_decay")}, builder);
}

} // namespace cgc::backend

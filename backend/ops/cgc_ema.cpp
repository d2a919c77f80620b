// cgc.ema: one kernel for all parameters on cuda.
#include "backend/ops/lower_optimizer.h"

namespace cgc::backend {

Result<bool> launchEma(const ir::Node &node, BucketBuilder &builder) {
  const std::optional<Place> skip = builder.optionalPlace(node.arg("skip"));
  std::vector<Place> averages, parameters, results;
  for (unsigned i = 0; i < node.numResults(); ++i) {
    const auto operand = [&](llvm::StringRef list) {
      return flatPlace(builder.place(node.arg(list).list()[i].value()), builder);
    };
    averages.push_back(operand("averages"));
    parameters.push_back(operand("parameters"));
    results.push_back(flatPlace(builder.allocate(*node.result(i)), builder));
  }
  return launchGroups(
      "ema_f32", averages, [&] { return std::vector{skip}; },
      [&](size_t i) { return RecordTensors{{averages[i], parameters[i]}, {results[i]}}; }, {},
      {*node.arg("decay").asNumber()}, builder);
}

} // namespace cgc::backend

// cgc.ema: one kernel for all f32 parameters on cuda; else LibTorch's lerp, tensor by tensor.
#include "backend/ops/lower_optimizer.h"

namespace cgc::backend {

Status lowerEma(const ir::Node &node, BucketBuilder &builder) {
  const double decay = *node.arg("decay").asNumber();
  std::optional<Place> skip;
  if (const ir::Arg &arg = node.arg("skip"); !arg.isNone())
    skip = builder.place(arg.value());
  std::vector<Place> averages, parameters, results;
  for (unsigned i = 0; i < node.numResults(); ++i) {
    const auto operand = [&](llvm::StringRef list) {
      return flatPlace(builder.place(node.arg(list).list()[i].value()), builder);
    };
    averages.push_back(operand("averages"));
    parameters.push_back(operand("parameters"));
    results.push_back(flatPlace(builder.allocate(*node.result(i)), builder));
  }
  const std::vector<size_t> rest = launchGroups(
      "ema_f32", averages, [&] { return std::vector{skip}; },
      [&](size_t i) { return RecordTensors{{averages[i], parameters[i]}, {results[i]}}; }, {},
      {decay}, builder);
  TensorMath math(builder);
  for (size_t i : rest) {
    if (!skip) {
      math.lerp(averages[i], parameters[i], 1 - decay, results[i]);
      continue;
    }
    const Place moved = math.lerp(averages[i], parameters[i], 1 - decay);
    math.where(*skip, averages[i], moved, results[i]);
  }
  return Status::ok();
}

} // namespace cgc::backend

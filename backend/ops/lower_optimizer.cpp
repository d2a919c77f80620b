// OptimizerStep: operands, scale and skipped steps.
#include "backend/ops/lower_optimizer.h"

namespace cgc::backend {

OptimizerStep optimizerStep(const ir::Node &node, llvm::ArrayRef<llvm::StringRef> names,
                            BucketBuilder &builder) {
  const auto places = [&](llvm::StringRef name) {
    std::vector<Place> places;
    for (const ir::Arg &arg : node.arg(name).list())
      places.push_back(flatPlace(builder.place(arg.value()), builder));
    return places;
  };
  const auto optional = [&](llvm::StringRef name) {
    const ir::Arg &arg = node.arg(name);
    return arg.isNone() ? std::nullopt : std::optional(builder.place(arg.value()));
  };
  OptimizerStep step{.gradients = places("gradients"),
                     .values = {},
                     .results = {},
                     .lr = builder.place(node.arg("lr").value()),
                     .step = builder.place(node.arg("step").value()),
                     .scale = optional("scale"),
                     .skip = optional("skip")};
  unsigned next = 0;
  for (llvm::StringRef name : names) {
    step.values.push_back(places(name));
    std::vector<Place> &results = step.results.emplace_back();
    for (size_t i = 0; i < step.size(); ++i)
      results.push_back(flatPlace(builder.allocate(*node.result(next++)), builder));
  }
  return step;
}

Place scaledGradient(const OptimizerStep &step, size_t i, TensorMath &math) {
  Place gradient = math.converted(step.gradients[i], step.values[0][i].dtype);
  return step.scale ? math.mul(gradient, *step.scale) : gradient;
}

Place newValue(const OptimizerStep &step, size_t list, size_t i, BucketBuilder &builder) {
  const Place &result = step.results[list][i];
  return step.skip ? builder.temporary(result.dtype, result.sizes) : result;
}

void keepIfSkipped(const OptimizerStep &step, size_t list, size_t i, const Place &value,
                   TensorMath &math) {
  if (step.skip)
    math.where(*step.skip, step.values[list][i], value, step.results[list][i]);
}

} // namespace cgc::backend

// cgc.linear_sgd: on cuda the small GEMM in f32 that updates the weight.
#include "backend/ops/converted.h"
#include "backend/ops/lower_weight_gradient.h"

namespace cgc::backend {

Result<bool> launchLinearSgd(const ir::Node &node, BucketBuilder &builder) {
  if (builder.target() != DeviceKind::Cuda)
    return false;
  const std::optional<Place> bias = builder.optionalPlace(node.arg("bias")),
                             step = builder.optionalPlace(node.arg("step"));
  std::vector<Place> results;
  for (const ir::Value &result : node.results())
    results.push_back(builder.allocate(result));
  const auto newBias = bias ? std::optional(results[1]) : std::nullopt,
             nextStep = step ? std::optional(results.back()) : std::nullopt;
  return lowerSmallGemm(
      weightGradientOperands(node, builder).gemm(results[0], newBias), builder,
      SmallGemmUpdate{.weight = builder.place(node.arg("weight").value()),
                      .bias = bias,
                      .lr = converted(builder.place(node.arg("lr").value()), DType::F32, builder),
                      .weightDecay = *node.arg("weight_decay").asNumber(),
                      .step = step,
                      .nextStep = nextStep});
}

} // namespace cgc::backend

// cgc.linear_sgd: on cuda the small GEMM in f32 that updates the weight.
#include "backend/ops/converted.h"
#include "backend/ops/lower_weight_gradient.h"

namespace cgc::backend {

Result<bool> launchLinearSgd(const ir::Node &node, BucketBuilder &builder) {
  std::vector<Place> results;
  for (const ir::Value &result : node.results())
    results.push_back(builder.allocate(result));
  GemmPlaces gemm = weightGradientOperands(node, builder);
  gemm.lr = converted(builder.place(node.arg("lr").value()), DType::F32, builder);
  gemm.oldWeight = builder.place(node.arg("weight").value());
  gemm.oldBias = builder.optionalPlace(node.arg("bias"));
  gemm.step = builder.optionalPlace(node.arg("step"));
  gemm.y = results[0];
  if (gemm.oldBias)
    gemm.xSums = results[1];
  if (gemm.step)
    gemm.nextStep = results.back();
  return lowerGemm(gemm, {.sgdWeightDecay = *node.arg("weight_decay").asNumber()}, builder)
      .has_value();
}

} // namespace cgc::backend

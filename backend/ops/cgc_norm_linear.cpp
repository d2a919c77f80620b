// cgc.norm_linear: one kernel where lowerNormGemm has one; else the normalization, then the
// GEMM.
#include "backend/ops/cgc_linear.h"
#include "backend/ops/lower_activation.h"
#include "backend/ops/lower_layer_norm.h"

namespace cgc::backend {

Status lowerNormLinear(const ir::Node &node, BucketBuilder &builder) {
  const ir::Arg &bias = node.arg("bias");
  GemmPlaces gemm{.x = builder.place(node.arg("input").value()),
                  .w = builder.place(node.arg("weight").value()),
                  .bias = bias.isNone() ? std::nullopt : std::optional(builder.place(bias.value())),
                  .y = builder.allocate(*node.result())};
  const Activation activation = activationNamed(node.arg("activation").as<std::string>());
  const double eps = *node.arg("eps").asNumber();
  if (lowerNormGemm(gemm, activation, eps, builder))
    return Status::ok();

  const Place x = gemm.x;
  gemm.x = builder.temporary(x.dtype, x.sizes);
  LayerNorm norm{.input = x, .result = gemm.x, .columns = x.sizes.back(), .eps = eps};
  if (!x.type().isContiguous()) {
    builder.copy(x, gemm.x);
    norm.input = gemm.x;
  }
  if (!launchLayerNorm(norm, builder))
    callLayerNorm(norm, {norm.columns}, builder);
  return lowerWholeGemm(gemm, activation, builder);
}

} // namespace cgc::backend

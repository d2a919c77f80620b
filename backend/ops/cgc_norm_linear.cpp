// cgc.norm_linear: one kernel where lowerNormProduct has one; else the normalization, then the
// GEMM.
#include "backend/ops/cgc_linear.h"
#include "backend/ops/lower_activation.h"
#include "backend/ops/lower_layer_norm.h"

namespace cgc::backend {

Status lowerNormLinear(const ir::Node &node, BucketBuilder &builder) {
  const ir::Arg &bias = node.arg("bias");
  Product product{.x = builder.place(node.arg("input").value()),
                  .weight = builder.place(node.arg("weight").value()),
                  .bias = bias.isNone() ? std::nullopt : std::optional(builder.place(bias.value())),
                  .residual = {},
                  .activation = activationNamed(node.arg("activation").as<std::string>()),
                  .result = builder.allocate(*node.result())};
  const double eps = *node.arg("eps").asNumber();
  if (lowerNormProduct(product, eps, builder))
    return Status::ok();

  const Place x = product.x;
  product.x = builder.temporary(x.dtype, x.sizes);
  LayerNorm norm{.input = x, .result = product.x, .columns = x.sizes.back(), .eps = eps};
  if (!x.type().isContiguous()) {
    builder.copy(x, product.x);
    norm.input = product.x;
  }
  if (!launchLayerNorm(norm, builder))
    callLayerNorm(norm, {norm.columns}, builder);
  return lowerWholeProduct(product, builder);
}

} // namespace cgc::backend

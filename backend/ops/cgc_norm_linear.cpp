// cgc.norm_linear: one kernel where lowerNormGemm has one; else the normalization, then the
// GEMM.
#include "backend/ops/cgc_norm_linear.h"

#include "backend/ops/cgc_linear.h"
#include "backend/ops/lower_activation.h"
#include "backend/ops/lower_layer_norm.h"
#include "backend/row_statistics.h"

namespace cgc::backend {
namespace {

GemmPlaces placesOf(const ir::NormLinearOp &op, const BucketBuilder &builder) {
  const auto optional = [&](const ir::Value *value) {
    return value ? std::optional(expectedPlace(*value, builder)) : std::nullopt;
  };
  return {.x = expectedPlace(*op.input(), builder),
          .w = expectedPlace(*op.weight(), builder),
          .bias = optional(op.bias()),
          .xStatistics = optional(op.inputStatistics()),
          .y = expectedPlace(*op.result(), builder)};
}

} // namespace

bool lowersToNormGemm(const ir::NormLinearOp &op, const BucketBuilder &builder) {
  return lowersToNormGemm(placesOf(op, builder), activationNamed(op.activation()), op.eps(),
                          builder);
}

Result<bool> launchNormLinear(const ir::Node &node, BucketBuilder &builder) {
  const auto op = *ir::NormLinearOp::of(node);
  builder.allocate(*op.result());
  GemmPlaces gemm = placesOf(op, builder);
  gemm.yStatistics = wantedRowStatistics(node, builder);
  const Activation activation = activationNamed(op.activation());
  const ir::Value *statistics = op.inputStatistics();
  if (statistics && builder.isPlaced(statistics) &&
      lowerNormGemm(gemm, activation, op.eps(), builder))
    return placeRowStatistics(node, gemm.yStatistics, builder);

  const Place x = gemm.x;
  gemm.x = builder.temporary(x.dtype, x.sizes);
  gemm.xStatistics.reset();
  LayerNorm norm{.input = x, .result = gemm.x, .columns = x.sizes.back(), .eps = op.eps()};
  if (!x.type().isContiguous()) {
    builder.copy(x, gemm.x);
    norm.input = gemm.x;
  }
  if (!launchLayerNorm(norm, builder))
    callLayerNorm(norm, {norm.columns}, builder);
  return lowerWholeGemm(node, gemm, activation, builder);
}

} // namespace cgc::backend

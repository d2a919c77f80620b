// cgc.linear: one GEMM with the epilogue that it supports, then the remaining steps in place.
#include "backend/lower_gemm.h"
#include "backend/ops/lower_activation.h"
#include "backend/row_statistics.h"

namespace cgc::backend {

Result<bool> launchFusedLinear(const ir::Node &node, BucketBuilder &builder) {
  const GemmPlaces gemm{.x = builder.place(node.arg("input").value()),
                        .w = builder.place(node.arg("weight").value()),
                        .bias = builder.optionalPlace(node.arg("bias")),
                        .residual = builder.optionalPlace(node.arg("residual")),
                        .y = builder.allocate(*node.result()),
                        .yStatistics = wantedRowStatistics(node, builder)};
  const Activation activation = activationNamed(node.arg("activation").as<std::string>());
  const bool gates = node.arg("gates") == ir::Arg(true);
  std::optional<UnfusedEpilogue> rest =
      lowerGemm(gemm, {.gates = gates, .activation = activation}, builder);
  if (!rest) {
    callLinear(gemm, builder);
    rest = {activation != Activation::None, gemm.residual.has_value(), true};
  }
  if (rest->activation)
    activate(activation, gemm.y, gemm.y, builder);
  if (rest->residual && gates)
    multiplyInto(*gemm.residual, gemm.y, gemm.y, builder);
  else if (rest->residual)
    addInto(*gemm.residual, gemm.y, gemm.y, builder);
  return placeRowStatistics(node, rest->rowStatistics ? std::nullopt : gemm.yStatistics, builder);
}

} // namespace cgc::backend

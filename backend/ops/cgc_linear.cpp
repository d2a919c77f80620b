// cgc.linear: one GEMM with the epilogue that it supports, then the remaining steps in place.
#include "backend/ops/cgc_linear.h"

#include "backend/ops/lower_activation.h"
#include "backend/row_statistics.h"

namespace cgc::backend {

Result<bool> lowerWholeGemm(const ir::Node &node, const GemmPlaces &operands, Activation activation,
                            BucketBuilder &builder) {
  CGC_ASSIGN_OR_RETURN(UnfusedEpilogue rest, lowerGemm(operands, activation, builder));
  const Place &y = operands.y;
  const std::optional<Place> &residual = operands.residual;
  if (rest.activation)
    activate(activation, y, y, builder);
  if (rest.residual)
    addInto(*residual, y, y, builder);
  return placeRowStatistics(node, rest.rowStatistics ? std::nullopt : operands.yStatistics,
                            builder);
}

Result<bool> launchFusedLinear(const ir::Node &node, BucketBuilder &builder) {
  return lowerWholeGemm(node,
                        {.x = builder.place(node.arg("input").value()),
                         .w = builder.place(node.arg("weight").value()),
                         .bias = builder.optionalPlace(node.arg("bias")),
                         .residual = builder.optionalPlace(node.arg("residual")),
                         .y = builder.allocate(*node.result()),
                         .yStatistics = wantedRowStatistics(node, builder)},
                        activationNamed(node.arg("activation").as<std::string>()), builder);
}

} // namespace cgc::backend

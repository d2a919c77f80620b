// cgc.norm_linear: one kernel that reads the row statistics of its input.
#include "backend/ops/cgc_norm_linear.h"

#include "backend/lower_gemm.h"
#include "backend/ops/lower_activation.h"
#include "backend/row_statistics.h"

namespace cgc::backend {
namespace {

GemmPlaces placesOf(const ir::CgcNormLinearOp &op, const BucketBuilder &builder) {
  const auto optional = [&](const ir::Value *value) {
    return value ? std::optional(expectedPlace(*value, builder)) : std::nullopt;
  };
  return {.x = expectedPlace(*op.input(), builder),
          .w = expectedPlace(*op.weight(), builder),
          .bias = optional(op.bias()),
          .xStatistics = optional(op.inputStatistics()),
          .y = expectedPlace(*op.result(), builder)};
}

GemmProblem::Epilogue epilogueOf(const ir::CgcNormLinearOp &op) {
  return {.activation = activationNamed(op.activation()), .normEps = op.eps()};
}

} // namespace

bool lowersToNormGemm(const ir::CgcNormLinearOp &op, const BucketBuilder &builder) {
  return lowersToGemm(placesOf(op, builder), epilogueOf(op), builder);
}

Result<bool> launchNormLinear(const ir::Node &node, BucketBuilder &builder) {
  const auto op = *ir::CgcNormLinearOp::of(node);
  const ir::Value *statistics = op.inputStatistics();
  if (!statistics || !builder.isPlaced(statistics))
    return false;
  builder.allocate(*op.result());
  GemmPlaces gemm = placesOf(op, builder);
  gemm.yStatistics = wantedRowStatistics(node, builder);
  return lowerGemm(gemm, epilogueOf(op), builder) &&
         placeRowStatistics(node, gemm.yStatistics, builder);
}

} // namespace cgc::backend

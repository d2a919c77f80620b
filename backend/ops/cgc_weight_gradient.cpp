// cgc.weight_gradient: on cuda a GEMM of transposed operands, which may also add up the rows.
#include "backend/ops/lower_weight_gradient.h"

#include "backend/lowering.h"

namespace cgc::backend {

GemmPlaces weightGradientOperands(const ir::Node &node, BucketBuilder &builder) {
  const auto matrix = [&](llvm::StringRef name) {
    Place place = builder.place(node.arg(name).value());
    if (place.sizes.size() == 1) { // One row.
      place.sizes.insert(place.sizes.begin(), 1);
      place.strides.insert(place.strides.begin(), place.sizes.back());
    }
    const auto rows = mergeLeading(place, 2);
    return transposed(rows ? *rows : *mergeLeading(densePlace(place, builder), 2));
  };
  GemmPlaces operands;
  operands.x = matrix("grad_out");
  operands.w = matrix("input");
  return operands;
}

Result<bool> launchWeightGradient(const ir::Node &node, BucketBuilder &builder) {
  GemmPlaces gemm = weightGradientOperands(node, builder);
  gemm.y = builder.allocate(*node.result(0));
  if (node.numResults() > 1)
    gemm.xSums = builder.allocate(*node.result(1));
  return lowerGemm(gemm, {}, builder).has_value();
}

} // namespace cgc::backend

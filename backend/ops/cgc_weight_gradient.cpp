// cgc.weight_gradient: on cuda a small GEMM in f32 that also adds up the rows, or one of cuBLASLt,
// which accumulates 16-bit operands in f32 and may write f32.
#include "backend/ops/lower_weight_gradient.h"

#include "backend/lowering.h"

namespace cgc::backend {

WeightGradientOperands weightGradientOperands(const ir::Node &node, BucketBuilder &builder) {
  const auto matrix = [&](llvm::StringRef name) {
    Place place = builder.place(node.arg(name).value());
    if (place.sizes.size() == 1) { // One row.
      place.sizes.insert(place.sizes.begin(), 1);
      place.strides.insert(place.strides.begin(), place.sizes.back());
    }
    const auto rows = mergeLeading(place, 2);
    return rows ? *rows : *mergeLeading(densePlace(place, builder), 2);
  };
  return {matrix("grad_out"), matrix("input")};
}

Result<bool> launchWeightGradient(const ir::Node &node, BucketBuilder &builder) {
  if (builder.target() != DeviceKind::Cuda)
    return false;
  const WeightGradientOperands operands = weightGradientOperands(node, builder);
  const Place result = builder.allocate(*node.result(0));
  if (node.numResults() > 1)
    return lowerSmallGemm(operands.gemm(result, builder.allocate(*node.result(1))), builder);
  return lowerProduct(transposed(operands.grad), operands.input, result, builder);
}

} // namespace cgc::backend

// cgc.weight_gradient: on cuda a small GEMM in f32 that also adds up the rows, or one of cuBLASLt,
// which accumulates 16-bit operands in f32 and may write f32; else one of LibTorch, of operands
// that are converted first.
#include "backend/ops/lower_sum.h"
#include "backend/ops/lower_weight_gradient.h"
#include "backend/ops/tensor_math.h"

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

void lowerWeightGradient(const WeightGradientOperands &operands, const Place &result,
                         const std::optional<Place> &bias, BucketBuilder &builder) {
  const auto &[grad, input] = operands;
  if (bias) {
    if (lowerSmallGemm(operands.gemm(result, bias), builder))
      return;
    if (!launchSumsOfRows(grad, *bias, builder))
      builder.callInto("aten::sum", "IntList_out",
                       {builder.tensor(grad), std::vector<int64_t>{0}, false, bias->dtype}, *bias);
  }
  if (lowerProduct(transposed(grad), input, result, builder))
    return;
  TensorMath math(builder);
  builder.callInto("aten::mm", "out",
                   {builder.tensor(transposed(math.converted(grad, result.dtype))),
                    builder.tensor(math.converted(input, result.dtype))},
                   result);
}

Status lowerWeightGradient(const ir::Node &node, BucketBuilder &builder) {
  const Place result = builder.allocate(*node.result(0));
  const auto bias = node.numResults() > 1 ? std::optional(builder.allocate(*node.result(1)))
                                          : std::optional<Place>();
  lowerWeightGradient(weightGradientOperands(node, builder), result, bias, builder);
  return Status::ok();
}

} // namespace cgc::backend

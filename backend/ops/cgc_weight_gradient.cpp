// cgc.weight_gradient: on cuda a small GEMM in f32 that also adds up the rows, or one of cuBLASLt,
// which accumulates 16-bit operands in f32 and may write f32; else one of LibTorch, of operands
// that are converted first.
#include "backend/lower_gemm.h"
#include "backend/ops/lower_column_sums.h"
#include "backend/ops/tensor_math.h"

namespace cgc::backend {

Status lowerWeightGradient(const ir::Node &node, BucketBuilder &builder) {
  TensorMath math(builder);
  const Place result = builder.allocate(*node.result(0));
  const auto bias = node.numResults() > 1 ? std::optional(builder.allocate(*node.result(1)))
                                          : std::optional<Place>();
  // Matrices [rows, N] and [rows, K].
  llvm::SmallVector<Place, 2> operands;
  for (llvm::StringRef name : {"grad_out", "input"}) {
    Place place = builder.place(node.arg(name).value());
    if (place.sizes.size() == 1) { // One row.
      place.sizes.insert(place.sizes.begin(), 1);
      place.strides.insert(place.strides.begin(), place.sizes.back());
    }
    const auto rows = mergeLeading(place, 2);
    operands.push_back(rows ? *rows : *mergeLeading(densePlace(place, builder), 2));
  }
  if (bias) {
    if (lowerSmallGemm(
            {.a = transposed(operands[0]), .b = transposed(operands[1]), .y = result, .sums = bias},
            builder))
      return Status::ok();
    if (!launchColumnSums(operands[0], *bias, builder))
      builder.callInto("aten::sum", "IntList_out",
                       {builder.tensor(operands[0]), std::vector<int64_t>{0}, false, bias->dtype},
                       *bias);
  }
  if (lowerProduct(transposed(operands[0]), operands[1], result, builder))
    return Status::ok();
  for (Place &operand : operands)
    operand = math.converted(operand, result.dtype);
  builder.callInto("aten::mm", "out",
                   {builder.tensor(transposed(operands[0])), builder.tensor(operands[1])}, result);
  return Status::ok();
}

} // namespace cgc::backend

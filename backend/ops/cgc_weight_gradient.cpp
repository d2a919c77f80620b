// cgc.weight_gradient: a product of LibTorch. On cuda it accumulates 16-bit operands in f32 and
// writes f32; on cpu these operands are converted first.
#include "backend/ops/tensor_math.h"

namespace cgc::backend {

Status lowerWeightGradient(const ir::Node &node, BucketBuilder &builder) {
  TensorMath math(builder);
  const Place result = builder.allocate(*node.result());
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
  const DType from = operands[0].dtype;
  const bool widens = from != result.dtype && builder.target() == DeviceKind::Cuda &&
                      dtypeSize(from) == 2 && result.dtype == DType::F32;
  if (!widens)
    for (Place &operand : operands)
      operand = math.converted(operand, result.dtype);
  std::vector<AtenArg> args = {builder.tensor(transposed(operands[0])),
                               builder.tensor(operands[1])};
  if (widens)
    args.emplace_back(DType::F32);
  builder.callInto("aten::mm", widens ? "dtype_out" : "out", std::move(args), result);
  return Status::ok();
}

} // namespace cgc::backend

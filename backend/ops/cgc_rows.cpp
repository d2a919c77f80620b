// cgc.rows: one kernel on cuda; else a copy of the first row, or a gather.
#include "backend/kernels.h"
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerRows(const ir::Node &node, BucketBuilder &builder) {
  Place input = builder.place(node.arg("input").value());
  Place result = builder.allocate(*node.result());
  std::optional<Place> index;
  if (const ir::Arg &arg = node.arg("index"); !arg.isNone())
    index = builder.place(arg.value());
  if (launchWarpRows(kernelNamed("rows", result.dtype), input.sizes[0], {input, index}, result,
                     builder))
    return Status::ok();
  if (!index) {
    input.sizes = result.sizes;
    input.strides = {input.strides[0], input.strides[2]};
    builder.copy(input, result);
    return Status::ok();
  }
  if (index->dtype != DType::I64) { // gather takes no other dtype.
    Place wide = builder.temporary(DType::I64, index->sizes);
    builder.copy(*index, wide);
    index = wide;
  }
  // Each index is repeated along its row.
  result.sizes = {input.sizes[0], 1, input.sizes[2]};
  result.strides = ir::contiguousStrides(result.sizes);
  index->sizes = result.sizes;
  index->strides = {index->strides[0], 0, 0};
  builder.callInto("aten::gather", "out",
                   {builder.tensor(input), int64_t{1}, builder.tensor(*index), false}, result);
  return Status::ok();
}

} // namespace cgc::backend

// cgc.rows: a copy of the first row, or a gather.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerRows(const ir::Node &node, BucketBuilder &builder) {
  Place input = builder.place(node.arg("input").value());
  Place result = builder.allocate(*node.result());
  if (node.arg("index").isNone()) {
    input.sizes = result.sizes;
    input.strides = {input.strides[0], input.strides[2]};
    builder.copy(input, result);
    return Status::ok();
  }
  Place index = builder.place(node.arg("index").value());
  builder.boundInput(index, input.sizes[1]);
  if (index.dtype != DType::I64) { // gather takes no other.
    Place wide = builder.temporary(DType::I64, index.sizes);
    builder.copy(index, wide);
    index = wide;
  }
  // Each index is repeated along its row.
  result.sizes = {input.sizes[0], 1, input.sizes[2]};
  result.strides = ir::contiguousStrides(result.sizes);
  index.sizes = result.sizes;
  index.strides = {index.strides[0], 0, 0};
  builder.callInto("aten::gather", "out",
                   {builder.tensor(input), int64_t{1}, builder.tensor(index), false}, result);
  return Status::ok();
}

} // namespace cgc::backend

// linear: one matrix product with the bias fused, on the input seen as a matrix.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerLinear(const ir::Node &node, BucketBuilder &builder) {
  Place input = builder.place(node.arg("input").value());
  Place weight = builder.place(node.arg("weight").value());
  Place result = builder.allocate(*node.result());
  std::optional<Place> rows, resultRows;
  if (input.sizes.size() >= 2 && weight.sizes.size() == 2) {
    rows = mergeLeading(input, 2);
    resultRows = mergeLeading(result, 2);
  }
  if (!rows || !resultRows) {
    builder.callThenCopy("aten::linear", "", callArgs(node, builder), {result});
    return Status::ok();
  }
  AtenArg a = builder.tensor(*rows), b = builder.tensor(transposed(weight));
  if (node.arg("bias").isNone())
    builder.callInto("aten::mm", "out", {a, b}, *resultRows);
  else
    builder.callInto("aten::addmm", "out",
                     {builder.arg(node.arg("bias")), a, b, int64_t{1}, int64_t{1}}, *resultRows);
  return Status::ok();
}

} // namespace cgc::backend

// linear: one matrix product with the bias fused, on the input seen as a matrix.
#include "backend/ops/linear.h"

namespace cgc::backend {

void multiplyInto(const Place &input, const Place &weight, const ir::Arg &bias, const Place &result,
                  BucketBuilder &builder) {
  std::optional<Place> rows, resultRows;
  if (input.sizes.size() >= 2 && weight.sizes.size() == 2) {
    rows = mergeLeading(input, 2);
    resultRows = mergeLeading(result, 2);
  }
  if (!rows || !resultRows) {
    builder.callThenCopy("aten::linear", "",
                         {builder.tensor(input), builder.tensor(weight), builder.arg(bias)},
                         {result});
    return;
  }
  AtenArg a = builder.tensor(*rows), b = builder.tensor(transposed(weight));
  if (bias.isNone())
    builder.callInto("aten::mm", "out", {a, b}, *resultRows);
  else
    builder.callInto("aten::addmm", "out", {builder.arg(bias), a, b, int64_t{1}, int64_t{1}},
                     *resultRows);
}

Status lowerLinear(const ir::Node &node, BucketBuilder &builder) {
  Place input = builder.place(node.arg("input").value());
  Place weight = builder.place(node.arg("weight").value());
  Place result = builder.allocate(*node.result());
  multiplyInto(input, weight, node.arg("bias"), result, builder);
  return Status::ok();
}

} // namespace cgc::backend

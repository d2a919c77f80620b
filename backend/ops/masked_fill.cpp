// masked_fill: a choice between the value and the tensor, in one pass.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerMaskedFill(const ir::Node &node, BucketBuilder &builder) {
  Place result = builder.allocate(*node.result());
  Place value;
  if (const ir::Arg &arg = node.arg("value"); arg.isValue()) {
    value = builder.place(arg.value());
    if (value.dtype != result.dtype) {
      Place converted = builder.temporary(result.dtype, value.sizes);
      builder.copy(value, converted);
      value = converted;
    }
  } else {
    value = builder.temporary(result.dtype, {});
    builder.fill(value, builder.arg(arg));
  }
  builder.callInto(
      "aten::where", "self_out",
      {builder.arg(node.arg("mask")), builder.tensor(value), builder.arg(node.arg("self"))},
      result);
  return Status::ok();
}

} // namespace cgc::backend

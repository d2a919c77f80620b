// where: numbers become 0-d tensors in device memory, as its kernel takes no numbers.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerWhere(const ir::Node &node, BucketBuilder &builder) {
  Place result = builder.allocate(*node.result());
  auto operand = [&](const ir::Arg &arg) -> AtenArg {
    if (arg.isValue())
      return builder.arg(arg);
    Place number = builder.temporary(result.dtype, {});
    builder.fill(number, builder.arg(arg));
    return builder.tensor(number);
  };
  AtenArg self = operand(node.arg("self")), other = operand(node.arg("other"));
  builder.callInto("aten::where", "self_out", {builder.arg(node.arg("condition")), self, other},
                   result);
  return Status::ok();
}

} // namespace cgc::backend

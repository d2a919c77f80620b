// rsub: other - alpha * self, a subtraction with its operands swapped.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerRsub(const ir::Node &node, BucketBuilder &builder) {
  builder.callInto("aten::sub", "out",
                   {builder.arg(node.arg("other")), builder.arg(node.arg("self")),
                    builder.arg(node.arg("alpha"))},
                   builder.allocate(*node.result()));
  return Status::ok();
}

} // namespace cgc::backend

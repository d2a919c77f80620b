// scatter: LibTorch has an overload for a tensor and one for a number.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerScatter(const ir::Node &node, BucketBuilder &builder) {
  builder.callInto("aten::scatter", node.arg("src").isValue() ? "src_out" : "value_out",
                   callArgs(node, builder), builder.allocate(*node.result()));
  return Status::ok();
}

} // namespace cgc::backend

// full and full_like: a fill of the result.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerFull(const ir::Node &node, BucketBuilder &builder) {
  builder.fill(builder.allocate(*node.result()), node.arg("fill_value"));
  return Status::ok();
}

} // namespace cgc::backend

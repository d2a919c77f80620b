// cgc.attention: LibTorch's attention, its result seen head by head.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerFusedAttention(const ir::Node &node, BucketBuilder &builder) {
  const ir::TensorType &query = node.arg("query").value()->tensor();
  Place result = builder.allocate(*node.result());
  assert(result.type().isContiguous());
  result.sizes = query.sizes;
  result.strides = {result.strides[0], query.sizes[3], result.strides[1], 1};
  builder.callThenCopy("aten::scaled_dot_product_attention", "",
                       {builder.arg(node.arg("query")), builder.arg(node.arg("key")),
                        builder.arg(node.arg("value")), builder.arg(node.arg("attn_mask")), 0.0,
                        builder.arg(node.arg("is_causal")), builder.arg(node.arg("scale")), false},
                       {result});
  return Status::ok();
}

} // namespace cgc::backend

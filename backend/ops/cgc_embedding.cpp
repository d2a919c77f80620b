// cgc.embedding: rows of the table, then the positions.
#include "backend/ops/embedding.h"

namespace cgc::backend {

Status lowerFusedEmbedding(const ir::Node &node, BucketBuilder &builder) {
  Place weight = builder.place(node.arg("weight").value());
  Place indices = builder.place(node.arg("indices").value());
  Place result = builder.allocate(*node.result());
  Place rows = builder.temporary(result.dtype, result.sizes);
  embedInto(weight, std::move(indices), rows, builder);
  builder.callInto("aten::add", "out",
                   {builder.tensor(rows), builder.arg(node.arg("positions")), int64_t{1}}, result);
  return Status::ok();
}

} // namespace cgc::backend

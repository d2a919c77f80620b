// cgc.embedding: gathers rows of the table and adds the positions.
#include "backend/ops/lower_embedding.h"

namespace cgc::backend {

Status lowerFusedEmbedding(const ir::Node &node, BucketBuilder &builder) {
  Place weight = builder.place(node.arg("weight").value());
  Place indices = builder.place(node.arg("indices").value());
  Place positions = builder.place(node.arg("positions").value());
  embedInto(weight, std::move(indices), positions, builder.allocate(*node.result()), builder);
  return Status::ok();
}

} // namespace cgc::backend

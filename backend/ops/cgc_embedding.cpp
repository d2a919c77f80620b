// cgc.embedding: gathers rows of the table and adds the positions; then row statistics.
#include "backend/ops/lower_embedding.h"
#include "backend/row_statistics.h"

namespace cgc::backend {

Status lowerFusedEmbedding(const ir::Node &node, BucketBuilder &builder) {
  Place weight = builder.place(node.arg("weight").value());
  Place indices = builder.place(node.arg("indices").value());
  const Place result = builder.allocate(*node.result());
  const std::optional<Place> statistics = wantedRowStatistics(node, builder);
  const bool written =
      embedInto(weight, std::move(indices), builder.optionalPlace(node.arg("positions")), result,
                statistics, builder);
  placeRowStatistics(node, result, statistics, written, builder);
  return Status::ok();
}

} // namespace cgc::backend

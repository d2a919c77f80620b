// cgc.embedding: one kernel on cuda.
#include "backend/ops/lower_embedding.h"
#include "backend/row_statistics.h"

namespace cgc::backend {

Result<bool> launchFusedEmbedding(const ir::Node &node, BucketBuilder &builder) {
  const Place weight = builder.place(node.arg("weight").value()),
              indices = builder.place(node.arg("indices").value()),
              result = builder.allocate(*node.result());
  const std::optional<Place> positions = builder.optionalPlace(node.arg("positions")),
                             statistics = wantedRowStatistics(node, builder);
  if (statistics && launchEmbedding(weight, indices, positions, result, statistics, builder))
    return placeRowStatistics(node, statistics, builder);
  return launchEmbedding(weight, indices, positions, result, {}, builder) &&
         placeRowStatistics(node, {}, builder);
}

} // namespace cgc::backend

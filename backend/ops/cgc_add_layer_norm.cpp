// cgc.add_layer_norm: one kernel on cuda.
#include "backend/kernels.h"
#include "backend/ops/lower_layer_norm.h"
#include "backend/row_statistics.h"

namespace cgc::backend {

Result<bool> launchAddLayerNorm(const ir::Node &node, BucketBuilder &builder) {
  LayerNorm norm{.input = builder.place(node.arg("input").value()),
                 .addend = builder.optionalPlace(node.arg("addend")),
                 .weight = builder.optionalPlace(node.arg("weight")),
                 .bias = builder.optionalPlace(node.arg("bias")),
                 .result = builder.allocate(*node.result(1)),
                 .columns = node.result(1)->tensor().sizes.back(),
                 .eps = *node.arg("eps").asNumber()};
  if (norm.addend) {
    norm.sum = builder.allocate(*node.result(0));
  } else if (norm.input.type().isContiguous()) {
    builder.setPlace(node.result(0), norm.input);
  } else {
    builder.copy(norm.input, builder.allocate(*node.result(0)));
    norm.input = builder.place(node.result(0));
  }
  norm.rowStatistics = wantedRowStatistics(node, builder);
  if (norm.rowStatistics && launchLayerNorm(norm, builder))
    return placeRowStatistics(node, norm.rowStatistics, builder);
  norm.rowStatistics.reset();
  return launchLayerNorm(norm, builder) && placeRowStatistics(node, {}, builder);
}

} // namespace cgc::backend

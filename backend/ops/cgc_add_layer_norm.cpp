// cgc.add_layer_norm: one kernel on cuda; else the sum, then its layer norm, then row statistics.
#include "backend/kernels.h"
#include "backend/ops/lower_layer_norm.h"
#include "backend/row_statistics.h"

namespace cgc::backend {
namespace {

/// Adds the records of the sum, if there is one, and of its layer norm.
void lowerNorm(const LayerNorm &norm, BucketBuilder &builder) {
  if (launchLayerNorm(norm, builder))
    return;
  if (norm.addend &&
      !launchElementwise(ElementwiseOp::Add, norm.input, norm.addend, 0, *norm.sum, builder))
    builder.callInto("aten::add", "out",
                     {builder.tensor(norm.input), builder.tensor(*norm.addend), int64_t{1}},
                     *norm.sum);
  callLayerNorm(norm, {norm.columns}, builder);
}

} // namespace

Status lowerAddLayerNorm(const ir::Node &node, BucketBuilder &builder) {
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
  const std::optional<Place> statistics = wantedRowStatistics(node, builder);
  norm.rowStatistics = statistics;
  const bool written = statistics && launchLayerNorm(norm, builder);
  if (!written) {
    norm.rowStatistics.reset();
    lowerNorm(norm, builder);
  }
  placeRowStatistics(node, norm.result, statistics, written, builder);
  return Status::ok();
}

} // namespace cgc::backend

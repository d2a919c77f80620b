// cgc.add_layer_norm: one kernel on cuda; else the sum, then its layer normalisation.
#include "backend/kernels.h"
#include "backend/ops/layer_norm.h"

namespace cgc::backend {

Status lowerAddLayerNorm(const ir::Node &node, BucketBuilder &builder) {
  auto optional = [&](const ir::Arg &arg) {
    return arg.isNone() ? std::nullopt : std::optional(builder.place(arg.value()));
  };
  LayerNorm norm{.input = builder.place(node.arg("input").value()),
                 .addend = builder.place(node.arg("addend").value()),
                 .weight = optional(node.arg("weight")),
                 .bias = optional(node.arg("bias")),
                 .sum = builder.allocate(*node.result(0)),
                 .result = builder.allocate(*node.result(1)),
                 .columns = node.result(0)->tensor().sizes.back(),
                 .eps = *node.arg("eps").asNumber()};
  if (launchLayerNorm(norm, builder))
    return Status::ok();
  if (!launchElementwise(ElementwiseOp::Add, norm.input, norm.addend, 0, *norm.sum, builder))
    builder.callInto("aten::add", "out",
                     {builder.tensor(norm.input), builder.tensor(*norm.addend), int64_t{1}},
                     *norm.sum);
  builder.callThenCopy("aten::layer_norm", "",
                       {builder.tensor(*norm.sum), std::vector<int64_t>{norm.columns},
                        builder.arg(node.arg("weight")), builder.arg(node.arg("bias")), norm.eps,
                        true},
                       {norm.result});
  return Status::ok();
}

} // namespace cgc::backend

// Op functions: norms and dropout.
#include "frontend/op_import.h"

namespace cgc::frontend {

using ir::Arg;
using ir::OpKind;

Arg importBatchNorm(OpImporter &op) {
  Arg input = op.arg("input"), weight = op.arg("weight"), bias = op.arg("bias");
  Arg mean = op.arg("running_mean"), var = op.arg("running_var"), eps = op.arg("eps");
  Arg training = op.arg("training"), momentum = op.arg("momentum");
  if (training != Arg(true) || !mean.isNone() || !var.isNone())
    return op.emit(OpKind::BatchNorm, {{"input", input},
                                       {"weight", weight},
                                       {"bias", bias},
                                       {"running_mean", mean},
                                       {"running_var", var},
                                       {"training", training},
                                       {"momentum", momentum},
                                       {"eps", eps}});
  // The statistics of the input, as in weight standardization: a group_norm with the elements of
  // each channel as one group.
  Arg channels = op.emit(OpKind::Transpose, {{"self", input}, {"dim0", 0}, {"dim1", 1}});
  Arg rows = op.emit(OpKind::Flatten, {{"self", channels}, {"start_dim", 1}, {"end_dim", -1}});
  Arg normalized = op.emit(OpKind::GroupNorm,
                           {{"input", op.emit(OpKind::Unsqueeze, {{"self", rows}, {"dim", 0}})},
                            {"num_groups", op.emit(OpKind::Size, {{"self", input}, {"dim", 1}})},
                            {"weight", weight},
                            {"bias", bias},
                            {"eps", eps}});
  Arg result = op.emit(OpKind::Reshape, {{"self", normalized},
                                         {"shape", op.emit(OpKind::Size, {{"self", channels}})}});
  return op.emit(OpKind::Transpose, {{"self", result}, {"dim0", 0}, {"dim1", 1}});
}

Arg importNativeLayerNorm(OpImporter &op) {
  return op.onlyResult(op.emit(OpKind::LayerNorm, {{"input", op.arg("input")},
                                                   {"normalized_shape", op.arg("normalized_shape")},
                                                   {"weight", op.arg("weight")},
                                                   {"bias", op.arg("bias")},
                                                   {"eps", op.arg("eps")}}));
}

Arg importNativeGroupNorm(OpImporter &op) {
  op.arg("N"), op.arg("C"), op.arg("HxW"); // The sizes of the input.
  return op.onlyResult(op.emit(OpKind::GroupNorm, {{"input", op.arg("input")},
                                                   {"num_groups", op.arg("group")},
                                                   {"weight", op.arg("weight")},
                                                   {"bias", op.arg("bias")},
                                                   {"eps", op.arg("eps")}}));
}

Arg importNativeBatchNorm(OpImporter &op) {
  Arg training = op.arg("training");
  return op.onlyResult(
      op.emit(OpKind::BatchNorm, {{"input", op.arg("input")},
                                  {"weight", op.arg("weight")},
                                  {"bias", op.arg("bias")},
                                  {"running_mean", op.arg("running_mean")},
                                  {"running_var", op.arg("running_var")},
                                  {"training", training.isNone() ? Arg(false) : training},
                                  {"momentum", op.arg("momentum")},
                                  {"eps", op.arg("eps")}}));
}

Arg importBatchNormOfBatch(OpImporter &op) {
  return op.refuse(ir::Cause::Autograd);
}

Arg importNativeDropout(OpImporter &op) {
  op.arg("p");
  if (op.arg("train") != Arg(false))
    return op.refuse(ir::Cause::Random);
  return op.onlyResult(op.arg("input"));
}

Arg importInstanceNorm(OpImporter &op) {
  if (op.arg("use_input_stats") != Arg(true))
    return op.refuse("cgc takes instance_norm with the statistics of its input only");
  op.arg("running_mean"), op.arg("running_var"), op.arg("momentum"); // Not used then.
  Arg input = op.arg("input");
  return op.emit(OpKind::GroupNorm,
                 {{"input", input},
                  {"num_groups", op.emit(OpKind::Size, {{"self", input}, {"dim", 1}})},
                  {"weight", op.arg("weight")},
                  {"bias", op.arg("bias")},
                  {"eps", op.arg("eps")}});
}

} // namespace cgc::frontend

// Op functions: norms and dropout.
#include "frontend/ops/op_import.h"

namespace cgc::frontend {

using ir::Arg;
using ir::OpKind;

namespace {
/// Normalizes with the statistics of the input, as in weight standardization: a group_norm with the
/// elements of each channel as one group.
Arg normalizeByInput(OpImporter &op) {
  Arg input = op.arg("input");
  Arg channels = op.emit(OpKind::Transpose, {{"self", input}, {"dim0", 0}, {"dim1", 1}});
  Arg rows = op.emit(OpKind::Flatten, {{"self", channels}, {"start_dim", 1}, {"end_dim", -1}});
  Arg normalized = op.emit(OpKind::GroupNorm,
                           {{"input", op.emit(OpKind::Unsqueeze, {{"self", rows}, {"dim", 0}})},
                            {"num_groups", op.emit(OpKind::Size, {{"self", input}, {"dim", 1}})},
                            {"weight", op.arg("weight")},
                            {"bias", op.arg("bias")},
                            {"eps", op.arg("eps")}});
  Arg result = op.emit(OpKind::Reshape, {{"self", normalized},
                                         {"shape", op.emit(OpKind::Size, {{"self", channels}})}});
  return op.emit(OpKind::Transpose, {{"self", result}, {"dim0", 0}, {"dim1", 1}});
}
} // namespace

Arg importBatchNorm(OpImporter &op) {
  Arg mean = op.arg("running_mean"), var = op.arg("running_var"), momentum = op.arg("momentum");
  if (mean.isNone() && var.isNone()) {
    Arg training = op.constant("training");
    if (!training.isConstant())
      return training; // It has been refused.
    if (training == Arg(true))
      return normalizeByInput(op);
  }
  // The rule of batch_norm decides about `training` once it is known.
  return op.emit(OpKind::BatchNorm, {{"input", op.arg("input")},
                                     {"weight", op.arg("weight")},
                                     {"bias", op.arg("bias")},
                                     {"running_mean", mean},
                                     {"running_var", var},
                                     {"training", op.argOr("training", false)},
                                     {"momentum", momentum},
                                     {"eps", op.arg("eps")}});
}

/// v with other norms: g has one for each index of `dim`, or one of all elements if `dim` is -1.
Arg importWeightNorm(OpImporter &op) {
  Arg v = op.arg("v"), g = op.arg("g"), dim = op.constant("dim");
  if (!dim.isConstant())
    return dim; // It has been refused.
  Arg rows = v, dims;
  if (dim != Arg(-1)) {
    rows = op.emit(OpKind::Transpose, {{"self", v}, {"dim0", dim}, {"dim1", 0}});
    Arg count = op.emit(OpKind::Size, {{"self", v}, {"dim", dim}});
    rows = op.emit(OpKind::Reshape, {{"self", rows}, {"shape", Arg::List{count, -1}}});
    dims = Arg::List{1};
  }
  Arg norms = op.emit(OpKind::LinalgVectorNorm, {{"self", rows}, {"dim", dims}});
  norms =
      op.emit(OpKind::Reshape, {{"self", norms}, {"shape", op.emit(OpKind::Size, {{"self", g}})}});
  Arg scale = op.emit(OpKind::Div, {{"self", g}, {"other", norms}});
  return op.emit(OpKind::Mul, {{"self", v}, {"other", scale}});
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
  return op.onlyResult(importBatchNorm(op));
}

Arg importNativeDropout(OpImporter &op) {
  return op.onlyResult(op.emit(
      OpKind::Dropout,
      {{"input", op.arg("input")}, {"p", op.arg("p")}, {"train", op.argOr("train", true)}}));
}

Arg importInstanceNorm(OpImporter &op) {
  if (op.constant("use_input_stats") != Arg(true))
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

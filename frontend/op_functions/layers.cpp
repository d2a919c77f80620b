// Op functions: convolutions, pooling and resampling.
#include "frontend/op_import.h"

#include <algorithm>

namespace cgc::frontend {

using ir::Arg;
using ir::OpKind;

namespace {
/// Returns a list for two dimensions, of which the first has the element `rows`, from one for one.
Arg withRow(const Arg &list, int64_t rows) {
  if (!list.isList())
    return Arg::List{rows, list};
  Arg::List result = list.list();
  if (!result.empty())
    result.insert(result.begin(), Arg(rows));
  return result;
}

/// Returns [N, C, W] as images of one row.
Arg asImages(OpImporter &op, Arg rows) {
  return op.emit(OpKind::Unsqueeze, {{"self", std::move(rows)}, {"dim", -2}});
}

/// Returns images of one row as [N, C, W].
Arg asRows(OpImporter &op, Arg images) {
  return op.emit(OpKind::Squeeze, {{"self", std::move(images)}, {"dim", Arg::List{-2}}});
}

/// The convolutions over one, two and three dimensions.
constexpr OpKind kConvolutions[] = {OpKind::Conv1d, OpKind::Conv2d, OpKind::Conv3d};

constexpr char kSpatialDims[] = "cgc takes convolutions over one to three dimensions; make the "
                                "weight a parameter, or write the stride into the call";

/// Returns the number of dimensions over which a convolution runs, 0 if it is not known here. The
/// weight's rank is known for parameters only, the length of the stride almost always.
size_t numSpatialDims(const Arg &weight, const Arg &stride) {
  if (weight.isValue() && weight.value()->isTensor())
    return static_cast<size_t>(weight.value()->tensor().rank() - 2);
  return stride.isList() ? stride.list().size() : 0;
}

/// Imports a convolution with the arguments of `op`, whatever form it has.
Arg convolution(OpImporter &op, size_t spatial, bool transposed) {
  std::vector<std::pair<llvm::StringRef, Arg>> args = {
      {"input", op.arg("input")},     {"weight", op.arg("weight")},
      {"bias", op.arg("bias")},       {"stride", op.arg("stride")},
      {"padding", op.arg("padding")}, {"dilation", op.arg("dilation")},
      {"groups", op.arg("groups")}};
  const Arg outputPadding = op.arg("output_padding"); // Used only by transposed convolutions.
  if (!transposed) {
    return op.emit(kConvolutions[spatial - 1], args);
  }
  args.emplace_back("output_padding", outputPadding);
  if (spatial > 1)
    return op.emit(spatial == 2 ? OpKind::ConvTranspose2d : OpKind::ConvTranspose3d, args);
  for (auto &[name, arg] : args)
    if (name == "input" || name == "weight")
      arg = asImages(op, arg);
    else if (name.ends_with("padding"))
      arg = withRow(arg, 0);
    else if (name == "stride" || name == "dilation")
      arg = withRow(arg, 1);
  return asRows(op, op.emit(OpKind::ConvTranspose2d, args));
}
} // namespace

Arg importConvolution(OpImporter &op) {
  const Arg weight = op.arg("weight"), stride = op.arg("stride");
  const size_t spatial = numSpatialDims(weight, stride);
  if (spatial < 1 || spatial > 3)
    return op.refuse(kSpatialDims);
  return convolution(op, spatial, op.constant("transposed") == Arg(true));
}

Arg importConvolutionMode(OpImporter &op) {
  Arg input = op.arg("input"), weight = op.arg("weight"), dilation = op.arg("dilation");
  const size_t spatial = numSpatialDims(weight, op.arg("stride"));
  if (spatial < 1 || spatial > 3)
    return op.refuse(kSpatialDims);
  Arg padding = Arg::ints(ir::Dims(spatial, 0));
  const Arg isSame = op.emit(OpKind::PrimEqual, {{"a", op.arg("padding")}, {"b", "same"}});
  if (isSame != Arg(false)) {
    if (!dilation.isList() || dilation.list().empty())
      return op.refuse("cgc takes a list of dilations for padding=\"same\"");
    // Pads by dilation * (kernel - 1) in all, half of it rounded down at the start. The input is
    // padded by the odd element at the end first.
    Arg::List halves, ends(2 * spatial, Arg(0));
    for (size_t i = 0; i < spatial; ++i) {
      Arg kernel = op.emit(OpKind::Size, {{"self", weight}, {"dim", static_cast<int64_t>(2 + i)}});
      Arg all = op.emit(OpKind::Mul,
                        {{"self", op.emit(OpKind::Sub, {{"self", kernel}, {"other", 1}})},
                         {"other", dilation.list()[std::min(i, dilation.list().size() - 1)]}});
      halves.push_back(op.emit(OpKind::FloorDivide, {{"self", all}, {"other", 2}}));
      ends[2 * (spatial - 1 - i) + 1] = op.emit(OpKind::Remainder, {{"self", all}, {"other", 2}});
    }
    Arg padded = op.emit(OpKind::ConstantPad,
                         {{"self", input}, {"pad", Arg(std::move(ends))}, {"value", 0}});
    padding = op.choose(isSame, Arg(std::move(halves)), padding);
    input = op.choose(isSame, padded, input);
  }
  return op.emit(kConvolutions[spatial - 1], {{"input", input},
                                              {"weight", weight},
                                              {"bias", op.arg("bias")},
                                              {"stride", op.arg("stride")},
                                              {"padding", padding},
                                              {"dilation", dilation},
                                              {"groups", op.arg("groups")}});
}

Arg importConvTranspose1d(OpImporter &op) {
  return convolution(op, 1, /*transposed=*/true);
}

// Pooling over one dimension, as images of one row.

namespace {
Arg poolRows(OpImporter &op, OpKind kind,
             std::initializer_list<std::pair<llvm::StringRef, Arg>> more) {
  std::vector<std::pair<llvm::StringRef, Arg>> args = {
      {"self", asImages(op, op.arg("self"))},
      {"kernel_size", withRow(op.arg("kernel_size"), 1)},
      {"stride", withRow(op.arg("stride"), 1)},
      {"padding", withRow(op.arg("padding"), 0)},
      {"ceil_mode", op.arg("ceil_mode")}};
  args.insert(args.end(), more.begin(), more.end());
  return asRows(op, op.emit(kind, args));
}
} // namespace

Arg importAvgPool1d(OpImporter &op) {
  return poolRows(op, OpKind::AvgPool2d, {{"count_include_pad", op.arg("count_include_pad")}});
}

Arg importMaxPool1d(OpImporter &op) {
  return poolRows(op, OpKind::MaxPool2d, {{"dilation", withRow(op.arg("dilation"), 1)}});
}

Arg importAdaptiveAvgPool1d(OpImporter &op) {
  return asRows(
      op, op.emit(OpKind::AdaptiveAvgPool2d, {{"self", asImages(op, op.arg("self"))},
                                              {"output_size", withRow(op.arg("output_size"), 1)}}));
}

// Ops with several results, of which models read the first: the others are for training.

namespace {
Arg maxPoolWithIndices(OpImporter &op, OpKind kind) {
  return op.onlyResult(op.emit(kind, {{"self", op.arg("self")},
                                      {"kernel_size", op.arg("kernel_size")},
                                      {"stride", op.arg("stride")},
                                      {"padding", op.arg("padding")},
                                      {"dilation", op.arg("dilation")},
                                      {"ceil_mode", op.arg("ceil_mode")}}));
}
} // namespace

Arg importMaxPool2dWithIndices(OpImporter &op) {
  return maxPoolWithIndices(op, OpKind::MaxPool2d);
}
Arg importMaxPool3dWithIndices(OpImporter &op) {
  return maxPoolWithIndices(op, OpKind::MaxPool3d);
}

namespace {
/// Imports an overload whose size is given, or computed from a scale for each dimension.
Arg upsample(OpImporter &op, OpKind kind) {
  Arg input = op.arg("input"), size = op.arg("output_size"), scales = op.arg("scale_factors");
  std::vector<std::pair<llvm::StringRef, Arg>> args = {{"self", input}, {"output_size", size}};
  if (kind != OpKind::UpsampleNearest2d)
    args.emplace_back("align_corners", op.arg("align_corners"));
  if (size.isNone()) {
    if (!scales.isList() || scales.list().size() != 2)
      return op.refuse("cgc resamples by a constant scale for height and width");
    Arg::List sizes;
    for (int64_t i : {0, 1}) {
      const Arg &scale = scales.list()[static_cast<size_t>(i)];
      Arg extent = op.emit(OpKind::Size, {{"self", input}, {"dim", 2 + i}});
      sizes.push_back(op.emit(OpKind::PrimInt,
                              {{"a", op.emit(OpKind::Mul, {{"self", extent}, {"other", scale}})}}));
      args.emplace_back(i == 0 ? "scales_h" : "scales_w", scale);
    }
    args[1].second = Arg(std::move(sizes));
  }
  return op.emit(kind, args);
}
} // namespace

Arg importNearest2d(OpImporter &op) {
  return upsample(op, OpKind::UpsampleNearest2d);
}
Arg importBilinear2d(OpImporter &op) {
  return upsample(op, OpKind::UpsampleBilinear2d);
}
Arg importBicubic2d(OpImporter &op) {
  return upsample(op, OpKind::UpsampleBicubic2d);
}
Arg importBilinear2dAa(OpImporter &op) {
  return upsample(op, OpKind::UpsampleBilinear2dAa);
}
Arg importBicubic2dAa(OpImporter &op) {
  return upsample(op, OpKind::UpsampleBicubic2dAa);
}

} // namespace cgc::frontend

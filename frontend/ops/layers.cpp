// Op functions: convolutions, pooling and resampling.
#include "frontend/ops/op_import.h"

#include "ir/op_def.h"

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
    Arg padded = op.emit(OpKind::ConstantPadNd,
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
/// Imports an overload whose size is given, or computed from a scale for each of the `spatial`
/// dimensions.
Arg upsample(OpImporter &op, OpKind kind, int64_t spatial) {
  constexpr llvm::StringRef kScales[] = {"scales_d", "scales_h", "scales_w"};
  Arg input = op.arg("input"), size = op.arg("output_size"), scales = op.arg("scale_factors");
  std::vector<std::pair<llvm::StringRef, Arg>> args = {{"self", input}, {"output_size", size}};
  if (ir::opSchema(kind).find("align_corners"))
    args.emplace_back("align_corners", op.arg("align_corners"));
  if (size.isNone()) {
    if (!scales.isList() || scales.list().size() != static_cast<size_t>(spatial))
      return op.refuse("cgc resamples by a constant scale for each spatial dimension");
    Arg::List sizes;
    for (int64_t i = 0; i < spatial; ++i) {
      const Arg &scale = scales.list()[static_cast<size_t>(i)];
      Arg extent = op.sizeOf(input, 2 + i);
      sizes.push_back(op.emit(OpKind::PrimInt,
                              {{"a", op.emit(OpKind::Mul, {{"self", extent}, {"other", scale}})}}));
      args.emplace_back(spatial == 1 ? llvm::StringRef("scales") : kScales[3 - spatial + i], scale);
    }
    args[1].second = Arg(std::move(sizes));
  }
  return op.emit(kind, args);
}
} // namespace

Arg importNearest1d(OpImporter &op) {
  return upsample(op, OpKind::UpsampleNearest1d, 1);
}
Arg importNearest2d(OpImporter &op) {
  return upsample(op, OpKind::UpsampleNearest2d, 2);
}
Arg importNearest3d(OpImporter &op) {
  return upsample(op, OpKind::UpsampleNearest3d, 3);
}
Arg importNearestExact1d(OpImporter &op) {
  return upsample(op, OpKind::UpsampleNearestExact1d, 1);
}
Arg importNearestExact2d(OpImporter &op) {
  return upsample(op, OpKind::UpsampleNearestExact2d, 2);
}
Arg importNearestExact3d(OpImporter &op) {
  return upsample(op, OpKind::UpsampleNearestExact3d, 3);
}
Arg importLinear1d(OpImporter &op) {
  return upsample(op, OpKind::UpsampleLinear1d, 1);
}
Arg importBilinear2d(OpImporter &op) {
  return upsample(op, OpKind::UpsampleBilinear2d, 2);
}
Arg importTrilinear3d(OpImporter &op) {
  return upsample(op, OpKind::UpsampleTrilinear3d, 3);
}
Arg importBicubic2d(OpImporter &op) {
  return upsample(op, OpKind::UpsampleBicubic2d, 2);
}
Arg importBilinear2dAa(OpImporter &op) {
  return upsample(op, OpKind::UpsampleBilinear2dAa, 2);
}
Arg importBicubic2dAa(OpImporter &op) {
  return upsample(op, OpKind::UpsampleBicubic2dAa, 2);
}

namespace {
/// Pools windows that make the last `spatial` dimensions of `self` those of 'output_size'. If it
/// divides them, all windows have one size. Otherwise each dimension is pooled alone, the last one
/// first, so that the first of equal elements counts in row-major order.
Arg adaptiveMaxPool(OpImporter &op, OpKind kind, const Arg &self, Arg::List counts) {
  constexpr int64_t kMost = 256; // Each window of a dimension is a node.
  const auto spatial = static_cast<int64_t>(counts.size());
  for (const Arg &count : counts)
    if (!count.is<int64_t>() || count.as<int64_t>() < 1 || count.as<int64_t>() > kMost)
      return op.refuse("cgc takes a constant 'output_size' of adaptive max pooling, from 1 to " +
                       std::to_string(kMost));
  const auto divided = [&](const Arg &a, const Arg &b) {
    return op.emit(OpKind::FloorDivide, {{"self", a}, {"other", b}});
  };
  const auto pooled = [&](const Arg &from, const Arg::List &kernel) {
    return op.emit(kind, {{"self", from}, {"kernel_size", kernel}});
  };
  Arg rest = 0;
  Arg::List kernel, extents;
  for (int64_t i = 0; i < spatial; ++i) {
    const Arg &count = counts[static_cast<size_t>(i)];
    const Arg extent = op.sizeOf(self, i - spatial);
    Arg remainder = op.emit(OpKind::Remainder, {{"self", extent}, {"other", count}});
    rest = op.emit(OpKind::Add, {{"self", rest}, {"other", remainder}});
    extents.push_back(extent);
    kernel.push_back(divided(extent, count));
  }
  return op.chooseBranch(
      op.emit(OpKind::PrimEqual, {{"a", rest}, {"b", 0}}), [&] { return pooled(self, kernel); },
      [&] {
        Arg result = self;
        for (int64_t i = spatial - 1; i >= 0; --i) {
          const Arg &count = counts[static_cast<size_t>(i)],
                    &extent = extents[static_cast<size_t>(i)];
          const auto boundary = [&](int64_t window, int64_t more) {
            Arg product = op.emit(OpKind::Mul, {{"self", extent}, {"other", window}});
            return divided(op.emit(OpKind::Add, {{"self", product}, {"other", more}}), count);
          };
          Arg::List windows;
          for (int64_t window = 0; window < count.as<int64_t>(); ++window) {
            Arg start = boundary(window, 0), end = boundary(window + 1, count.as<int64_t>() - 1);
            Arg::List size(static_cast<size_t>(spatial), Arg(1));
            size[static_cast<size_t>(i)] = op.emit(OpKind::Sub, {{"self", end}, {"other", start}});
            Arg part =
                op.emit(OpKind::Slice,
                        {{"self", result}, {"dim", i - spatial}, {"start", start}, {"end", end}});
            windows.push_back(pooled(part, size));
          }
          result = op.emit(OpKind::Cat, {{"tensors", windows}, {"dim", i - spatial}});
        }
        return result;
      });
}

/// The argument 'output_size' as one number for each of the `spatial` dimensions.
Arg::List outputSizes(OpImporter &op, size_t spatial) {
  const Arg size = op.constant("output_size");
  Arg::List sizes = size.isList() ? size.list() : Arg::List{size};
  return sizes.size() == 1 ? Arg::List(spatial, sizes.front()) : sizes;
}
} // namespace

Arg importAdaptiveMaxPool1d(OpImporter &op) {
  Arg::List sizes = outputSizes(op, 1);
  sizes.insert(sizes.begin(), Arg(1));
  const Arg images = asImages(op, op.arg("self"));
  return op.onlyResult(asRows(op, adaptiveMaxPool(op, OpKind::MaxPool2d, images, sizes)));
}
Arg importAdaptiveMaxPool2d(OpImporter &op) {
  return op.onlyResult(adaptiveMaxPool(op, OpKind::MaxPool2d, op.arg("self"), outputSizes(op, 2)));
}
Arg importAdaptiveMaxPool3d(OpImporter &op) {
  return op.onlyResult(adaptiveMaxPool(op, OpKind::MaxPool3d, op.arg("self"), outputSizes(op, 3)));
}

/// Sums, averages or maxima of the rows of 'weight' that 'indices' picks, over bags of indices:
/// each begins at one of 'offsets'.
Arg importEmbeddingBag(OpImporter &op) {
  enum : int64_t { kSum, kMean, kMax }; // The argument 'mode'.
  const Arg weight = op.arg("weight"), indices = op.arg("indices"), mode = op.constant("mode");
  const Arg perSample = op.arg("per_sample_weights"), padding = op.constant("padding_idx");
  op.arg("sparse"); // The layout of the gradient.
  if (op.constant("scale_grad_by_freq") == Arg(true))
    return op.refuse("cgc does not scale gradients of embedding_bag by frequency");
  if (!padding.isNone() && padding != Arg(-1))
    return op.refuse("cgc takes embedding_bag without padding_idx only");
  if (!mode.is<int64_t>())
    return op.refused();
  Arg offsets = op.arg("offsets");
  if (op.constant("include_last_offset") == Arg(true))
    offsets = op.emit(OpKind::Slice, {{"self", offsets}, {"dim", 0}, {"start", 0}, {"end", -1}});
  const auto column = [&](const Arg &vector) {
    return op.emit(OpKind::Unsqueeze, {{"self", vector}, {"dim", -1}});
  };
  const auto numbersTo = [&](const Arg &count) {
    return op.emit(OpKind::Arange, {{"start", 0}, {"end", count}, {"step", 1}});
  };
  // An index belongs to the last bag that begins at it or before.
  const Arg length = op.sizeOf(indices, 0), numBags = op.sizeOf(offsets, 0);
  Arg hasBegun = op.emit(OpKind::Ge, {{"self", column(numbersTo(length))}, {"other", offsets}});
  Arg begun = op.emit(OpKind::Sum, {{"self", hasBegun}, {"dim", Arg::List{1}}});
  const Arg bags = op.emit(OpKind::Sub, {{"self", begun}, {"other", 1}});
  Arg rows = op.emit(OpKind::Embedding, {{"weight", weight}, {"indices", indices}});
  if (!perSample.isNone())
    rows = op.emit(OpKind::Mul, {{"self", rows}, {"other", column(perSample)}});
  const Arg width = op.sizeOf(weight, 1);
  const Arg zeros =
      op.emit(OpKind::Full, {{"size", Arg::List{numBags, width}},
                             {"fill_value", 0},
                             {"dtype", op.emit(OpKind::PrimDType, {{"self", weight}})}});
  if (mode == Arg(kMax)) {
    Arg places =
        op.emit(OpKind::Expand, {{"self", column(bags)}, {"size", Arg::List{length, width}}});
    return op.onlyResult(op.emit(OpKind::ScatterReduce, {{"self", zeros},
                                                         {"dim", 0},
                                                         {"index", places},
                                                         {"src", rows},
                                                         {"reduce", "amax"},
                                                         {"include_self", false}}));
  }
  Arg sums =
      op.emit(OpKind::IndexAdd, {{"self", zeros}, {"dim", 0}, {"index", bags}, {"source", rows}});
  if (mode == Arg(kSum))
    return op.onlyResult(sums);
  Arg isIn = op.emit(OpKind::Eq, {{"self", column(bags)}, {"other", numbersTo(numBags)}});
  Arg counts = op.emit(OpKind::Sum, {{"self", isIn}, {"dim", Arg::List{0}}});
  counts = op.emit(OpKind::ClampMin, {{"self", counts}, {"min", 1}});
  return op.onlyResult(op.emit(OpKind::Div, {{"self", sums}, {"other", column(counts)}}));
}

} // namespace cgc::frontend

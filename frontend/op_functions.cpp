// Op functions: the import of ATen ops that are not one op of cgc with the same arguments.
#include "frontend/op_import.h"

#include "llvm/ADT/STLExtras.h"

#include <c10/core/ScalarType.h>

namespace cgc::frontend {

using ir::Arg;
using ir::OpKind;

// Host values. A tensor made of a number is imported as the number, so reading the number out of
// the tensor is the identity.

Arg importIdentity(OpImporter &op) {
  return op.input(0);
}

Arg importItem(OpImporter &op) {
  return op.emit(OpKind::PrimItem, {{"self", op.input(0)}});
}

Arg importFalse(OpImporter &op) {
  for (size_t i = 0; i < op.node().inputs().size(); ++i)
    op.input(i); // Marks the argument as read, whatever it is.
  return Arg(false);
}

Arg importGetItem(OpImporter &op) {
  return op.emit(OpKind::PrimGetItem, {{"list", op.input(0)}, {"index", op.input(1)}});
}

Arg importLen(OpImporter &op) {
  return op.emit(OpKind::PrimLen, {{"list", op.input(0)}});
}

Arg importLeast(OpImporter &op) {
  Arg list = op.input(0);
  if (!list.isList() || list.list().empty())
    return op.refuse("cgc takes the least element of a list that is known while importing only");
  Arg least = list.list().front();
  for (const Arg &element : llvm::drop_begin(list.list()))
    least = op.emit(OpKind::Minimum, {{"self", least}, {"other", element}});
  return least;
}

Arg importRangeLength(OpImporter &op) {
  // (hi - lo) / step, rounded up: divides lo - hi, rounds down, and negates.
  Arg less = op.emit(OpKind::Sub, {{"self", op.arg("lo")}, {"other", op.arg("hi")}});
  Arg negative = op.emit(OpKind::FloorDivide, {{"self", less}, {"other", op.arg("step")}});
  return op.emit(
      OpKind::Maximum,
      {{"self", op.emit(OpKind::Mul, {{"self", negative}, {"other", -1}})}, {"other", 0}});
}

Arg importRangeElement(OpImporter &op) {
  Arg offset = op.emit(OpKind::Mul, {{"self", op.arg("index")}, {"other", op.arg("step")}});
  return op.emit(OpKind::Add, {{"self", op.arg("start")}, {"other", offset}});
}

Arg importContains(OpImporter &op) {
  return op.emit(OpKind::PrimContains, {{"container", op.input(0)}, {"item", op.input(1)}});
}

Arg importFormat(OpImporter &op) {
  Arg::List parts;
  for (size_t i = 0; i < op.node().inputs().size(); ++i)
    parts.push_back(op.input(i));
  return op.emit(OpKind::PrimFormat, {{"parts", Arg(std::move(parts))}});
}

namespace {
Arg negated(OpImporter &op, const Arg &condition) {
  return condition.is<bool>() ? Arg(!condition.as<bool>())
                              : op.emit(OpKind::PrimNot, {{"a", condition}});
}
} // namespace

Arg importIs(OpImporter &op) {
  Arg sides[] = {op.input(0), op.input(1)};
  // For a comparison with None, a type that is not optional decides.
  for (int i : {0, 1}) {
    c10::TypeKind kind = op.node().inputs()[i]->type()->kind();
    bool mayBeNone = kind == c10::TypeKind::OptionalType || kind == c10::TypeKind::AnyType;
    if (sides[1 - i].isNone() && sides[i].isValue() && !mayBeNone)
      return Arg(false);
  }
  return op.emit(OpKind::PrimIs, {{"a", sides[0]}, {"b", sides[1]}});
}

Arg importIsNot(OpImporter &op) {
  return negated(op, importIs(op));
}

Arg importEq(OpImporter &op) {
  if (op.isOnHost())
    return op.emit(OpKind::PrimEqual, {{"a", op.input(0)}, {"b", op.input(1)}});
  return op.emit(OpKind::Eq, {{"self", op.arg("self")}, {"other", op.arg("other")}});
}

Arg importNe(OpImporter &op) {
  if (op.isOnHost())
    return negated(op, importEq(op));
  return op.emit(OpKind::Ne, {{"self", op.arg("self")}, {"other", op.arg("other")}});
}

Arg importSqrt(OpImporter &op) {
  if (op.isOnHost())
    return op.emit(OpKind::Pow, {{"self", op.input(0)}, {"exponent", 0.5}});
  return op.emit(OpKind::Sqrt, {{"self", op.input(0)}});
}

Arg importIsCuda(OpImporter &op) {
  Arg device = op.emit(OpKind::PrimDevice, {{"self", op.input(0)}});
  Arg type = op.emit(OpKind::PrimDeviceType, {{"device", device}});
  return op.emit(OpKind::PrimEqual, {{"a", type}, {"b", "cuda"}});
}

// Creation. LibTorch's zeros() returns floats unless a dtype is given; full() has the type of its
// value.

Arg importArange(OpImporter &op) {
  Arg start = op.arg("start"), step = op.arg("step");
  return op.emit(OpKind::Arange, {{"start", start.isNone() ? Arg(0) : start},
                                  {"end", op.arg("end")},
                                  {"step", step.isNone() ? Arg(1) : step},
                                  {"dtype", op.arg("dtype")}});
}

namespace {
Arg fill(OpImporter &op, int value) {
  Arg dtype = op.arg("dtype");
  return op.emit(OpKind::Full, {{"size", op.arg("size")},
                                {"fill_value", value},
                                {"dtype", dtype.isNone() ? Arg(DType::F32) : dtype}});
}

Arg fillNew(OpImporter &op, Arg value) {
  Arg dtype = op.arg("dtype"), self = op.arg("self");
  if (dtype.isNone())
    dtype = op.emit(OpKind::PrimDType, {{"self", self}});
  return op.emit(OpKind::Full,
                 {{"size", op.arg("size")}, {"fill_value", std::move(value)}, {"dtype", dtype}});
}

Arg fillLike(OpImporter &op, int value) {
  return op.emit(OpKind::FullLike,
                 {{"self", op.arg("self")}, {"fill_value", value}, {"dtype", op.arg("dtype")}});
}
} // namespace

namespace {
Arg fillInPlace(OpImporter &op, Arg value) {
  Arg everywhere = op.emit(OpKind::Full, {{"size", Arg::List()}, {"fill_value", true}});
  return op.emit(OpKind::MaskedFill,
                 {{"self", op.arg("self")}, {"mask", everywhere}, {"value", std::move(value)}},
                 /*inPlace=*/true);
}
} // namespace

Arg importFillInPlace(OpImporter &op) {
  return fillInPlace(op, op.arg("value"));
}

Arg importZeroInPlace(OpImporter &op) {
  return fillInPlace(op, 0);
}

Arg importCopyInPlace(OpImporter &op) {
  // Adds the source to zeros. It is cloned first, since it may alias the overwritten tensor.
  Arg self = op.arg("self");
  Arg dtype = op.emit(OpKind::PrimDType, {{"self", self}});
  Arg source = op.emit(OpKind::To, {{"self", op.arg("src")}, {"dtype", dtype}});
  source = op.emit(OpKind::Clone, {{"self", source}});
  return op.emit(OpKind::Add, {{"self", fillInPlace(op, 0)}, {"other", source}}, /*inPlace=*/true);
}

Arg importZeros(OpImporter &op) {
  return fill(op, 0);
}
Arg importOnes(OpImporter &op) {
  return fill(op, 1);
}
Arg importNewZeros(OpImporter &op) {
  return fillNew(op, 0);
}
Arg importNewOnes(OpImporter &op) {
  return fillNew(op, 1);
}
Arg importNewFull(OpImporter &op) {
  return fillNew(op, op.arg("fill_value"));
}

Arg importTensor(OpImporter &op) {
  Arg value = op.input(0), dtype = op.arg("dtype");
  if (!value.is<int64_t>() && !value.is<double>() && !value.is<bool>())
    return op.refuse(ir::Cause::HostCopy);
  if (dtype.isNone() && value.is<double>())
    dtype = DType::F32;
  return op.emit(OpKind::Full, {{"size", Arg::List{}}, {"fill_value", value}, {"dtype", dtype}});
}

Arg importZerosLike(OpImporter &op) {
  return fillLike(op, 0);
}
Arg importOnesLike(OpImporter &op) {
  return fillLike(op, 1);
}

// Views.

Arg importReshapeAs(OpImporter &op) {
  return op.emit(OpKind::Reshape, {{"self", op.arg("self")},
                                   {"shape", op.emit(OpKind::Size, {{"self", op.arg("other")}})}});
}

Arg importExpandAs(OpImporter &op) {
  return op.emit(OpKind::Expand, {{"self", op.arg("self")},
                                  {"size", op.emit(OpKind::Size, {{"self", op.arg("other")}})}});
}

Arg importT(OpImporter &op) {
  return op.emit(OpKind::Transpose, {{"self", op.arg("self")}, {"dim0", 0}, {"dim1", 1}});
}

Arg importNumpyT(OpImporter &op) {
  // Reverses all dimensions; their number is known here only for parameters.
  Arg self = op.arg("self");
  if (!self.isValue() || !self.value()->isTensor() || self.value()->tensor().rank() != 2)
    return op.refuse("x.T of a tensor whose rank is not known here; write x.transpose(0, 1)");
  return importT(op);
}

Arg importMT(OpImporter &op) {
  return op.emit(OpKind::Transpose, {{"self", op.arg("self")}, {"dim0", -2}, {"dim1", -1}});
}

// Copies and casts.

Arg importRepeatInterleave(OpImporter &op) {
  // The repeats become a dimension, which is merged with the one before it.
  constexpr int64_t kMost = 1024; // Each repeat is an argument of a node.
  Arg self = op.arg("self"), repeats = op.arg("repeats"), dim = op.arg("dim");
  if (!repeats.is<int64_t>() || repeats.as<int64_t>() < 1 || repeats.as<int64_t>() > kMost)
    return op.refuse("cgc repeats a constant number of times, from 1 to " + std::to_string(kMost));
  auto count = static_cast<size_t>(repeats.as<int64_t>());
  int64_t last = dim.isNone() ? -1 : dim.as<int64_t>() + (dim.as<int64_t>() < 0 ? 0 : 1);
  Arg stacked = op.emit(OpKind::Stack, {{"tensors", Arg::List(count, self)}, {"dim", last}});
  return op.emit(
      OpKind::Flatten,
      {{"self", stacked}, {"start_dim", dim.isNone() ? 0 : last - 1}, {"end_dim", last}});
}

Arg importTo(OpImporter &op) {
  Arg dtype = op.arg("dtype"), device = op.arg("device"), other = op.arg("other");
  if (other.isValue())
    dtype = op.emit(OpKind::PrimDType, {{"self", other}});
  Arg result =
      op.emit(OpKind::To, {{"self", op.arg("self")}, {"dtype", dtype}, {"device", device}});
  if (op.arg("copy") == Arg(true))
    result = op.emit(OpKind::Clone, {{"self", result}});
  return result;
}

Arg importTypeAs(OpImporter &op) {
  return op.emit(OpKind::To, {{"self", op.arg("self")},
                              {"dtype", op.emit(OpKind::PrimDType, {{"self", op.arg("other")}})}});
}

Arg importPad(OpImporter &op) {
  Arg mode = op.arg("mode"), pad = op.arg("pad"), value = op.arg("value");
  if (mode == Arg("constant"))
    return op.emit(
        OpKind::ConstantPad,
        {{"self", op.arg("self")}, {"pad", pad}, {"value", value.isNone() ? Arg(0) : value}});
  const bool mirrors = mode == Arg("reflect");
  const size_t length = pad.isList() ? pad.list().size() : 0;
  if ((!mirrors && mode != Arg("replicate")) || (length != 2 && length != 4))
    return op.refuse("cgc pads with a constant, or one or two dimensions by \"reflect\" or "
                     "\"replicate\"");
  const OpKind kind = mirrors ? length == 2 ? OpKind::ReflectionPad1d : OpKind::ReflectionPad2d
                      : length == 2 ? OpKind::ReplicationPad1d
                                    : OpKind::ReplicationPad2d;
  return op.emit(kind, {{"self", op.arg("self")}, {"padding", pad}});
}

// Arithmetic and layers.

Arg importWhereTrue(OpImporter &op) {
  return op.refuse(ir::Cause::DataShape);
}

Arg importSquare(OpImporter &op) {
  return op.emit(OpKind::Pow, {{"self", op.arg("self")}, {"exponent", 2}});
}

Arg importConvolution(OpImporter &op) {
  Arg weight = op.arg("weight"), stride = op.arg("stride");
  // The weight's rank is known for parameters only, the length of the stride almost always.
  size_t spatial = stride.isList() ? stride.list().size() : 2;
  if (weight.isValue() && weight.value()->isTensor())
    spatial = weight.value()->tensor().rank() - 2;
  const bool transposed = op.arg("transposed") == Arg(true);
  if (spatial != 2 && (spatial != 1 || transposed))
    return op.refuse(transposed ? "only transposed convolutions over two dimensions are supported"
                                : "only convolutions over one or two dimensions are supported");
  const Arg outputPadding = op.arg("output_padding"); // Used only by transposed convolutions.
  std::initializer_list<std::pair<llvm::StringRef, Arg>> args = {
      {"input", op.arg("input")},     {"weight", weight},
      {"bias", op.arg("bias")},       {"stride", stride},
      {"padding", op.arg("padding")}, {"dilation", op.arg("dilation")},
      {"groups", op.arg("groups")}};
  if (!transposed)
    return op.emit(spatial == 1 ? OpKind::Conv1d : OpKind::Conv2d, args);
  std::vector<std::pair<llvm::StringRef, Arg>> all(args);
  all.emplace_back("output_padding", outputPadding);
  return op.emit(OpKind::ConvTranspose2d, all);
}

Arg importConvolutionMode(OpImporter &op) {
  Arg input = op.arg("input"), weight = op.arg("weight"), dilation = op.arg("dilation");
  const bool known = weight.isValue() && weight.value()->isTensor();
  const ir::Dims kernel = known ? weight.value()->tensor().sizes : ir::Dims();
  const size_t spatial = known ? kernel.size() - 2 : 0;
  if (spatial != 1 && spatial != 2)
    return op.refuse("cgc takes a convolution with padding by name if its weight is a parameter "
                     "over one or two dimensions");
  // "same" pads by dilation * (kernel - 1) in all, and by the odd element at the end.
  Arg::List ends(2 * spatial, Arg(0));
  bool padsEnds = false;
  std::vector<int64_t> starts(spatial, 0);
  if (op.arg("padding") == Arg("same")) {
    if (!dilation.isList() || dilation.list().empty())
      return op.refuse("cgc takes a constant dilation only");
    for (size_t i = 0; i < spatial; ++i) {
      const Arg &d = dilation.list()[std::min(i, dilation.list().size() - 1)];
      if (!d.is<int64_t>())
        return op.refuse("cgc takes a constant dilation only");
      const int64_t total = d.as<int64_t>() * (kernel[2 + i] - 1);
      starts[i] = total / 2;
      ends[2 * (spatial - 1 - i) + 1] = Arg(total % 2);
      padsEnds |= total % 2 != 0;
    }
  }
  if (padsEnds)
    input = op.emit(OpKind::ConstantPad,
                    {{"self", input}, {"pad", Arg(std::move(ends))}, {"value", 0}});
  return op.emit(spatial == 1 ? OpKind::Conv1d : OpKind::Conv2d,
                 {{"input", input},
                  {"weight", weight},
                  {"bias", op.arg("bias")},
                  {"stride", op.arg("stride")},
                  {"padding", Arg::ints(ir::Dims(starts.begin(), starts.end()))},
                  {"dilation", dilation},
                  {"groups", op.arg("groups")}});
}

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

// Functions of other ops.

namespace {
Arg relu6(OpImporter &op, bool inPlace) {
  return op.emit(OpKind::Hardtanh, {{"self", op.arg("self")}, {"min_val", 0}, {"max_val", 6}},
                 inPlace);
}
} // namespace

Arg importRelu6(OpImporter &op) {
  return relu6(op, /*inPlace=*/false);
}
Arg importRelu6InPlace(OpImporter &op) {
  return relu6(op, /*inPlace=*/true);
}

Arg importLogSigmoid(OpImporter &op) {
  Arg negative = op.emit(OpKind::Neg, {{"self", op.arg("self")}});
  return op.emit(OpKind::Neg, {{"self", op.emit(OpKind::Softplus, {{"self", negative}})}});
}

Arg importMax(OpImporter &op) {
  return op.emit(OpKind::Amax, {{"self", op.arg("self")}});
}
Arg importMin(OpImporter &op) {
  return op.emit(OpKind::Amin, {{"self", op.arg("self")}});
}

namespace {
/// Imports the overloads with `correction` and those with `unbiased`.
Arg spread(OpImporter &op, OpKind kind) {
  Arg unbiased = op.arg("unbiased"), correction = op.arg("correction"), keep = op.arg("keepdim");
  if (unbiased.is<bool>())
    correction = unbiased.as<bool>() ? 1 : 0;
  return op.emit(kind, {{"self", op.arg("self")},
                        {"dim", op.arg("dim")},
                        {"correction", correction},
                        {"keepdim", keep.isNone() ? Arg(false) : keep}});
}
} // namespace

Arg importVar(OpImporter &op) {
  return spread(op, OpKind::Var);
}
Arg importStd(OpImporter &op) {
  return spread(op, OpKind::Std);
}

Arg importNarrow(OpImporter &op) {
  Arg start = op.arg("start");
  return op.emit(OpKind::Slice,
                 {{"self", op.arg("self")},
                  {"dim", op.arg("dim")},
                  {"start", start},
                  {"end", op.emit(OpKind::Add, {{"self", start}, {"other", op.arg("length")}})}});
}

namespace {
/// Returns whether each index equals each number from 0 to `count` - 1, in a new last dimension.
Arg equalsEach(OpImporter &op, Arg indices, const Arg &count) {
  Arg column = op.emit(OpKind::Unsqueeze, {{"self", std::move(indices)}, {"dim", -1}});
  Arg numbers = op.emit(OpKind::Arange, {{"start", 0}, {"end", count}, {"step", 1}});
  return op.emit(OpKind::Eq, {{"self", column}, {"other", numbers}});
}
} // namespace

Arg importEye(OpImporter &op) {
  Arg rows = op.arg("n"), columns = op.arg("m"), dtype = op.arg("dtype");
  Arg numbers = op.emit(OpKind::Arange, {{"start", 0}, {"end", rows}, {"step", 1}});
  return op.emit(OpKind::To, {{"self", equalsEach(op, numbers, columns.isNone() ? rows : columns)},
                              {"dtype", dtype.isNone() ? Arg(DType::F32) : dtype}});
}

Arg importOneHot(OpImporter &op) {
  Arg classes = op.arg("num_classes");
  if (!classes.is<int64_t>() || classes.as<int64_t>() < 1)
    return op.refuse(ir::Cause::DataShape);
  return op.emit(OpKind::To,
                 {{"self", equalsEach(op, op.arg("self"), classes)}, {"dtype", DType::I64}});
}

} // namespace cgc::frontend

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
  if (op.arg("mode") != Arg("constant"))
    return op.refuse("cgc pads with a constant only");
  Arg value = op.arg("value");
  return op.emit(OpKind::ConstantPad, {{"self", op.arg("self")},
                                       {"pad", op.arg("pad")},
                                       {"value", value.isNone() ? Arg(0) : value}});
}

// Arithmetic and layers.

Arg importWhereTrue(OpImporter &op) {
  return op.refuse(ir::Cause::DataShape);
}

Arg importSquare(OpImporter &op) {
  return op.emit(OpKind::Pow, {{"self", op.arg("self")}, {"exponent", 2}});
}

Arg importConvolution(OpImporter &op) {
  if (op.arg("transposed") == Arg(true))
    return op.refuse(
        ir::explain("cgc cannot compile a transposed aten::_convolution", ir::Cause::NoRule),
        ir::Cause::NoRule);
  Arg weight = op.arg("weight");
  if (weight.isValue() && weight.value()->isTensor() && weight.value()->tensor().rank() != 4)
    return op.refuse("only convolutions over two dimensions are supported");
  op.arg("output_padding"); // Used only by transposed convolutions.
  return op.emit(OpKind::Conv2d, {{"input", op.arg("input")},
                                  {"weight", weight},
                                  {"bias", op.arg("bias")},
                                  {"stride", op.arg("stride")},
                                  {"padding", op.arg("padding")},
                                  {"dilation", op.arg("dilation")},
                                  {"groups", op.arg("groups")}});
}

} // namespace cgc::frontend

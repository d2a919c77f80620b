// ATen ops that are not one op of cgc with the same arguments: one function for each.
#include "frontend/aten.h"

#include <c10/core/ScalarType.h>

namespace cgc::frontend {

using ir::Arg;
using ir::OpKind;

// Host values. A tensor made of a number is the number, so what reads a number out of a tensor is
// nothing.

Arg importIdentity(AtenCall &call) {
  return call.arg(call.arg("self").isNone() ? "a" : "self");
}

Arg importGetItem(AtenCall &call) {
  Arg list = call.arg(call.arg("list").isNone() ? "self" : "list");
  Arg index = call.arg(call.arg("idx").isNone() ? "key" : "idx");
  if (list.isList() && index.is<int64_t>()) {
    auto size = static_cast<int64_t>(list.list().size());
    int64_t i = index.as<int64_t>() + (index.as<int64_t>() < 0 ? size : 0);
    if (i < 0 || i >= size)
      return call.refuse("the index is outside the list");
    return list.list()[static_cast<size_t>(i)];
  }
  return call.emit(OpKind::PrimGetItem, {{"list", list}, {"index", index}});
}

namespace {
/// Whether the operands are the same none, as far as the types say; nothing if that depends on the
/// caller.
std::optional<bool> bothNone(AtenCall &call) {
  bool operandIsNone[2];
  for (int i = 0; i < 2; ++i) {
    Arg arg = call.arg(i == 0 ? "self" : "obj");
    c10::TypeKind kind = call.node().inputs()[i]->type()->kind();
    if (arg.isValue() && (kind == c10::TypeKind::OptionalType || kind == c10::TypeKind::AnyType))
      return std::nullopt;
    operandIsNone[i] = arg.isNone();
  }
  return operandIsNone[0] && operandIsNone[1];
}
constexpr const char *kUnknownNone = "whether this value is None depends on the caller; export a "
                                     "method whose inputs are not optional";
} // namespace

Arg importIs(AtenCall &call) {
  std::optional<bool> same = bothNone(call);
  return same ? Arg(*same) : call.refuse(kUnknownNone);
}

Arg importIsNot(AtenCall &call) {
  std::optional<bool> same = bothNone(call);
  return same ? Arg(!*same) : call.refuse(kUnknownNone);
}

// Creation. LibTorch's zeros() are floats unless a dtype is given, full() has the type of its
// value.

Arg importArange(AtenCall &call) {
  Arg start = call.arg("start"), step = call.arg("step");
  return call.emit(OpKind::Arange, {{"start", start.isNone() ? Arg(0) : start},
                                    {"end", call.arg("end")},
                                    {"step", step.isNone() ? Arg(1) : step},
                                    {"dtype", call.arg("dtype")}});
}

namespace {
Arg fill(AtenCall &call, int value) {
  Arg dtype = call.arg("dtype");
  return call.emit(OpKind::Full, {{"size", call.arg("size")},
                                  {"fill_value", value},
                                  {"dtype", dtype.isNone() ? Arg(DType::F32) : dtype}});
}

Arg fillNew(AtenCall &call, Arg value) {
  Arg dtype = call.arg("dtype");
  if (dtype.isNone())
    dtype = call.emit(OpKind::PrimDType, {{"self", call.arg("self")}});
  return call.emit(
      OpKind::Full,
      {{"size", call.arg("size")}, {"fill_value", std::move(value)}, {"dtype", dtype}});
}

Arg fillLike(AtenCall &call, int value) {
  return call.emit(
      OpKind::FullLike,
      {{"self", call.arg("self")}, {"fill_value", value}, {"dtype", call.arg("dtype")}});
}
} // namespace

Arg importZeros(AtenCall &call) {
  return fill(call, 0);
}
Arg importOnes(AtenCall &call) {
  return fill(call, 1);
}
Arg importNewZeros(AtenCall &call) {
  return fillNew(call, 0);
}
Arg importNewOnes(AtenCall &call) {
  return fillNew(call, 1);
}
Arg importNewFull(AtenCall &call) {
  return fillNew(call, call.arg("fill_value"));
}
Arg importZerosLike(AtenCall &call) {
  return fillLike(call, 0);
}
Arg importOnesLike(AtenCall &call) {
  return fillLike(call, 1);
}

// Views

Arg importReshapeAs(AtenCall &call) {
  return call.emit(OpKind::Reshape,
                   {{"self", call.arg("self")},
                    {"shape", call.emit(OpKind::Size, {{"self", call.arg("other")}})}});
}

Arg importExpandAs(AtenCall &call) {
  return call.emit(OpKind::Expand,
                   {{"self", call.arg("self")},
                    {"size", call.emit(OpKind::Size, {{"self", call.arg("other")}})}});
}

Arg importT(AtenCall &call) {
  return call.emit(OpKind::Transpose, {{"self", call.arg("self")}, {"dim0", 0}, {"dim1", 1}});
}

Arg importNumpyT(AtenCall &call) {
  // Reverses all dimensions; their number is known here for parameters only.
  Arg self = call.arg("self");
  if (!self.isValue() || !self.value()->isTensor() || self.value()->tensor().rank() != 2)
    return call.refuse("x.T of a tensor whose rank is not known here; write x.transpose(0, 1)");
  return importT(call);
}

// Casts

Arg importTo(AtenCall &call) {
  Arg dtype = call.arg("dtype"), device = call.arg("device"), other = call.arg("other");
  if (other.isValue())
    dtype = call.emit(OpKind::PrimDType, {{"self", other}});
  Arg result =
      call.emit(OpKind::To, {{"self", call.arg("self")}, {"dtype", dtype}, {"device", device}});
  if (call.arg("copy") == Arg(true))
    result = call.emit(OpKind::Clone, {{"self", result}});
  return result;
}

Arg importTypeAs(AtenCall &call) {
  return call.emit(OpKind::To,
                   {{"self", call.arg("self")},
                    {"dtype", call.emit(OpKind::PrimDType, {{"self", call.arg("other")}})}});
}

// Arithmetic and layers

Arg importSquare(AtenCall &call) {
  return call.emit(OpKind::Pow, {{"self", call.arg("self")}, {"exponent", 2}});
}

Arg importConvolution(AtenCall &call) {
  if (call.refuseUnless("transposed", false))
    return call.fallback();
  Arg weight = call.arg("weight");
  if (weight.isValue() && weight.value()->isTensor() && weight.value()->tensor().rank() != 4)
    return call.refuse("only convolutions over two dimensions are supported");
  return call.emit(OpKind::Conv2d, {{"input", call.arg("input")},
                                    {"weight", weight},
                                    {"bias", call.arg("bias")},
                                    {"stride", call.arg("stride")},
                                    {"padding", call.arg("padding")},
                                    {"dilation", call.arg("dilation")},
                                    {"groups", call.arg("groups")}});
}

} // namespace cgc::frontend

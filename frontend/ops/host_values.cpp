// Op functions: ops on numbers, lists and devices, which specialize evaluates.
#include "frontend/ops/op_import.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::frontend {

using ir::Arg;
using ir::OpKind;

// A tensor made of a number is imported as the number, so reading the number out of
// the tensor is the identity.

Arg importIdentity(OpImporter &op) {
  return op.input(0);
}

Arg importItem(OpImporter &op) {
  return op.emit(OpKind::PrimItem, {{"self", op.input(0)}});
}

Arg importFalse(OpImporter &op) {
  for (size_t i = 0; i < op.numInputs(); ++i)
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
  for (size_t i = 0; i < op.numInputs(); ++i)
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
    if (sides[1 - i].isNone() && sides[i].isValue() && !op.mayBeNone(static_cast<size_t>(i)))
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

} // namespace cgc::frontend

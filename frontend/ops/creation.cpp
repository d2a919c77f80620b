// Op functions: ops that make or fill a tensor.
#include "frontend/ops/op_import.h"

namespace cgc::frontend {

using ir::Arg;
using ir::OpKind;

// LibTorch's zeros() returns floats unless a dtype is given; full() has the type of its
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
  return op.emit(
      OpKind::Full,
      {{"size", op.arg("size")}, {"fill_value", value}, {"dtype", op.argOr("dtype", DType::F32)}});
}

Arg fillNew(OpImporter &op, Arg value) {
  Arg own = op.emit(OpKind::PrimDType, {{"self", op.arg("self")}});
  return op.emit(OpKind::Full, {{"size", op.arg("size")},
                                {"fill_value", std::move(value)},
                                {"dtype", op.argOr("dtype", own)}});
}

Arg fillLike(OpImporter &op, int value) {
  return op.emit(OpKind::FullLike,
                 {{"self", op.arg("self")}, {"fill_value", value}, {"dtype", op.arg("dtype")}});
}
/// Fills 'self' with a number or the element of a 0-d tensor.
Arg fillSelf(OpImporter &op, Arg value, bool inPlace) {
  Arg everywhere = op.emit(OpKind::Full, {{"size", Arg::List()}, {"fill_value", true}});
  return op.emit(OpKind::MaskedFill,
                 {{"self", op.arg("self")}, {"mask", everywhere}, {"value", std::move(value)}},
                 inPlace);
}

/// Overwrites 'self' with `source`, of the same dtype, which must not alias it.
Arg overwriteSelf(OpImporter &op, const Arg &source) {
  return op.emit(OpKind::Add, {{"self", fillSelf(op, 0, /*inPlace=*/true)}, {"other", source}},
                 /*inPlace=*/true);
}

/// Overwrites 'self' with random numbers, times `factor`, plus `addend`.
Arg drawInPlace(OpImporter &op, OpKind random, const Arg &factor, const Arg &addend) {
  Arg numbers = op.emit(random, {{"self", op.arg("self")}});
  Arg scaled = op.emit(OpKind::Mul, {{"self", numbers}, {"other", factor}});
  return overwriteSelf(op, op.emit(OpKind::Add, {{"self", scaled}, {"other", addend}}));
}
} // namespace

Arg importFillInPlace(OpImporter &op) {
  return fillSelf(op, op.arg("value"), /*inPlace=*/true);
}

Arg importFill(OpImporter &op) {
  return fillSelf(op, op.arg("value"), /*inPlace=*/false);
}

Arg importZeroInPlace(OpImporter &op) {
  return fillSelf(op, 0, /*inPlace=*/true);
}

Arg importCopyInPlace(OpImporter &op) {
  // Adds the source to zeros. It is cloned first, since it may alias the overwritten tensor.
  Arg self = op.arg("self");
  Arg dtype = op.emit(OpKind::PrimDType, {{"self", self}});
  Arg source = op.emit(OpKind::To, {{"self", op.arg("src")}, {"dtype", dtype}});
  return overwriteSelf(op, op.emit(OpKind::Clone, {{"self", source}}));
}

Arg importUniformInPlace(OpImporter &op) {
  const Arg from = op.arg("from");
  Arg range = op.emit(OpKind::Sub, {{"self", op.arg("to")}, {"other", from}});
  return drawInPlace(op, OpKind::RandLike, range, from);
}

Arg importNormalInPlace(OpImporter &op) {
  const Arg mean = op.arg("mean"), std = op.arg("std");
  return drawInPlace(op, OpKind::RandnLike, std, mean);
}

Arg importBernoulliInPlace(OpImporter &op) {
  Arg self = op.arg("self");
  Arg shape = op.emit(OpKind::Size, {{"self", self}});
  Arg p = op.emit(OpKind::Expand, {{"self", op.arg("p")}, {"size", shape}});
  Arg dtype = op.emit(OpKind::PrimDType, {{"self", self}});
  Arg drawn = op.emit(OpKind::Bernoulli, {{"self", p}});
  return overwriteSelf(op, op.emit(OpKind::To, {{"self", drawn}, {"dtype", dtype}}));
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
  Arg value = op.input(0);
  if (!value.is<int64_t>() && !value.is<double>() && !value.is<bool>())
    return op.refuse(ir::Cause::HostCopy);
  Arg dtype = op.argOr("dtype", value.is<double>() ? Arg(DType::F32) : Arg());
  return op.emit(OpKind::Full, {{"size", Arg::List{}}, {"fill_value", value}, {"dtype", dtype}});
}

Arg importZerosLike(OpImporter &op) {
  return fillLike(op, 0);
}
// The elements of an empty tensor are any; the strides are cgc's own.
Arg importEmpty(OpImporter &op) {
  op.arg("stride");
  return fill(op, 0);
}
Arg importNewEmpty(OpImporter &op) {
  op.arg("stride");
  return fillNew(op, 0);
}

Arg importScalarTensor(OpImporter &op) {
  return op.emit(OpKind::Full, {{"size", Arg::List{}},
                                {"fill_value", op.arg("s")},
                                {"dtype", op.argOr("dtype", DType::F32)}});
}

Arg importOnesLike(OpImporter &op) {
  return fillLike(op, 1);
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
  Arg rows = op.arg("n"), columns = op.argOr("m", rows);
  Arg numbers = op.emit(OpKind::Arange, {{"start", 0}, {"end", rows}, {"step", 1}});
  return op.emit(OpKind::To, {{"self", equalsEach(op, numbers, columns)},
                              {"dtype", op.argOr("dtype", DType::F32)}});
}

Arg importOneHot(OpImporter &op) {
  Arg classes = op.arg("num_classes");
  // The op's default, -1, stands for the largest index and one more.
  if (classes.is<int64_t>() && classes.as<int64_t>() < 1)
    return op.refuse(ir::Cause::DataShape);
  return op.emit(OpKind::To,
                 {{"self", equalsEach(op, op.arg("self"), classes)}, {"dtype", DType::I64}});
}

} // namespace cgc::frontend

// Op functions: pointwise functions and reductions.
#include "frontend/op_import.h"

namespace cgc::frontend {

using ir::Arg;
using ir::OpKind;

Arg importWhereTrue(OpImporter &op) {
  return op.refuse(ir::Cause::DataShape);
}

Arg importSquare(OpImporter &op) {
  return op.emit(OpKind::Pow, {{"self", op.arg("self")}, {"exponent", 2}});
}
Arg importSquareInPlace(OpImporter &op) {
  return op.emit(OpKind::Pow, {{"self", op.arg("self")}, {"exponent", 2}}, /*inPlace=*/true);
}

Arg importSqrtInPlace(OpImporter &op) {
  return op.emit(OpKind::Sqrt, {{"self", op.arg("self")}}, /*inPlace=*/true);
}

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

Arg importMax(OpImporter &op) {
  return op.emit(OpKind::Amax, {{"self", op.arg("self")}});
}
Arg importMin(OpImporter &op) {
  return op.emit(OpKind::Amin, {{"self", op.arg("self")}});
}

namespace {
/// Imports the overloads with `correction` and those with `unbiased`.
Arg spread(OpImporter &op, OpKind kind) {
  Arg unbiased = op.arg("unbiased"), correction = op.arg("correction");
  if (!unbiased.isNone())
    correction = op.choose(unbiased, 1, 0);
  return op.emit(kind, {{"self", op.arg("self")},
                        {"dim", op.arg("dim")},
                        {"correction", correction},
                        {"keepdim", op.argOr("keepdim", false)}});
}
} // namespace

Arg importVar(OpImporter &op) {
  return spread(op, OpKind::Var);
}
Arg importStd(OpImporter &op) {
  return spread(op, OpKind::Std);
}

namespace {
/// Imports an op with two results, of which the second is the mean.
Arg withMean(OpImporter &op, Arg first) {
  Arg mean = op.emit(
      OpKind::Mean,
      {{"self", op.arg("self")}, {"dim", op.arg("dim")}, {"keepdim", op.argOr("keepdim", false)}});
  return Arg::List{std::move(first), std::move(mean)};
}
} // namespace

Arg importVarMean(OpImporter &op) {
  return withMean(op, importVar(op));
}
Arg importStdMean(OpImporter &op) {
  return withMean(op, importStd(op));
}

Arg importProd(OpImporter &op) {
  Arg flat =
      op.emit(OpKind::Flatten, {{"self", op.arg("self")}, {"start_dim", 0}, {"end_dim", -1}});
  return op.emit(OpKind::Prod, {{"self", flat}, {"dim", 0}, {"dtype", op.arg("dtype")}});
}

namespace {
/// Imports a softmax whose result may be wider than its argument.
Arg widening(OpImporter &op, OpKind kind) {
  Arg dtype = op.constant("half_to_float") == Arg(true) ? Arg(DType::F32) : Arg();
  return op.emit(kind, {{"self", op.arg("self")}, {"dim", op.arg("dim")}, {"dtype", dtype}});
}
} // namespace

Arg importHalfSoftmax(OpImporter &op) {
  return widening(op, OpKind::Softmax);
}
Arg importHalfLogSoftmax(OpImporter &op) {
  return widening(op, OpKind::LogSoftmax);
}

} // namespace cgc::frontend

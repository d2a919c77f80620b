// Op functions: pointwise functions and reductions.
#include "frontend/ops/op_import.h"

#include <limits>
#include <numbers>

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

namespace {
/// 'self' times a number.
Arg scaled(OpImporter &op, double factor) {
  return op.emit(OpKind::Mul, {{"self", op.arg("self")}, {"other", factor}});
}
/// Whether 'self' is a number.
Arg equals(OpImporter &op, double number) {
  return op.emit(OpKind::Eq, {{"self", op.arg("self")}, {"other", number}});
}
} // namespace

Arg importDeg2rad(OpImporter &op) {
  return scaled(op, std::numbers::pi / 180);
}
Arg importRad2deg(OpImporter &op) {
  return scaled(op, 180 / std::numbers::pi);
}

Arg importIsPosInf(OpImporter &op) {
  return equals(op, std::numeric_limits<double>::infinity());
}
Arg importIsNegInf(OpImporter &op) {
  return equals(op, -std::numeric_limits<double>::infinity());
}

namespace {
/// Outside of training, leaky_relu with the mean of the bounds.
Arg rrelu(OpImporter &op, bool inPlace) {
  if (op.constant("training") != Arg(false))
    return op.refuse(ir::Cause::Random);
  const Arg lower = op.constant("lower"), upper = op.constant("upper");
  if (!lower.asNumber() || !upper.asNumber())
    return op.refused();
  return op.emit(
      OpKind::LeakyRelu,
      {{"self", op.arg("self")}, {"negative_slope", (*lower.asNumber() + *upper.asNumber()) / 2}},
      inPlace);
}
} // namespace

Arg importRrelu(OpImporter &op) {
  return rrelu(op, /*inPlace=*/false);
}
Arg importRreluInPlace(OpImporter &op) {
  return rrelu(op, /*inPlace=*/true);
}

namespace {
/// An optional number of one dimension, or a list of dimensions, as a list.
Arg dimList(OpImporter &op) {
  Arg dim = op.arg("dim");
  return dim.isNone() || dim.isList() ? dim : Arg(Arg::List{dim});
}
} // namespace

Arg importAminmax(OpImporter &op) {
  Arg self = op.arg("self"), dim = dimList(op), keepDim = op.arg("keepdim");
  if (dim.isNone())
    dim = Arg::List();
  Arg::List results;
  for (OpKind kind : {OpKind::Amin, OpKind::Amax})
    results.push_back(op.emit(kind, {{"self", self}, {"dim", dim}, {"keepdim", keepDim}}));
  return results;
}

Arg importCountNonzero(OpImporter &op) {
  Arg isOther = op.emit(OpKind::Ne, {{"self", op.arg("self")}, {"other", 0}});
  return op.emit(OpKind::Sum, {{"self", isOther}, {"dim", dimList(op)}});
}

Arg importNansum(OpImporter &op) {
  Arg self = op.arg("self");
  Arg isNan = op.emit(OpKind::IsNan, {{"self", self}});
  Arg numbers =
      op.emit(OpKind::Where, {{"condition", isNan}, {"self", 0}, {"other", std::move(self)}});
  return op.emit(OpKind::Sum, {{"self", numbers},
                               {"dim", op.arg("dim")},
                               {"keepdim", op.arg("keepdim")},
                               {"dtype", op.arg("dtype")}});
}

namespace {
/// The lower of the middle elements along `dim`, which is kept as 1; NaN if there is one.
Arg median(OpImporter &op, const Arg &self, const Arg &dim) {
  const Arg sorted = op.emit(OpKind::Sort, {{"self", self}, {"dim", dim}});
  const auto elementAt = [&](const Arg &index) {
    Arg next = op.emit(OpKind::Add, {{"self", index}, {"other", 1}});
    return op.emit(OpKind::Slice,
                   {{"self", sorted}, {"dim", dim}, {"start", index}, {"end", next}});
  };
  const Arg last = op.emit(OpKind::Sub, {{"self", op.sizeOf(self, dim)}, {"other", 1}});
  const Arg middle = op.emit(OpKind::FloorDivide, {{"self", last}, {"other", 2}});
  const Arg largest = elementAt(last); // NaN is the last element of the order.
  return op.emit(OpKind::Where, {{"condition", op.emit(OpKind::IsNan, {{"self", largest}})},
                                 {"self", largest},
                                 {"other", elementAt(middle)}});
}
} // namespace

Arg importMedian(OpImporter &op) {
  const Arg self = op.arg("self"), dim = op.arg("dim");
  Arg kept = median(op, self, dim);
  return op.onlyResult(op.chooseBranch(
      op.arg("keepdim"), [&] { return kept; },
      [&] { return op.emit(OpKind::Squeeze, {{"self", kept}, {"dim", Arg::List{dim}}}); }));
}

Arg importMedianOfAll(OpImporter &op) {
  Arg all = op.emit(OpKind::Reshape, {{"self", op.arg("self")}, {"shape", Arg::List{-1}}});
  return op.emit(OpKind::Squeeze, {{"self", median(op, all, 0)}, {"dim", Arg::List{0}}});
}

Arg importIsin(OpImporter &op) {
  const Arg elements = op.arg("elements"), element = op.arg("element"),
            tests = op.arg("test_elements"), test = op.arg("test_element");
  op.arg("assume_unique"); // Only helps LibTorch to choose an algorithm.
  const auto equal = [&](const Arg &a, const Arg &b) {
    return op.emit(OpKind::Eq, {{"self", a}, {"other", b}});
  };
  Arg isIn;
  if (tests.isNone()) {
    isIn = equal(elements, test);
  } else if (elements.isNone()) {
    isIn = op.emit(OpKind::Any, {{"self", equal(tests, element)}});
  } else {
    Arg column = op.emit(OpKind::Unsqueeze, {{"self", elements}, {"dim", -1}});
    Arg flat = op.emit(OpKind::Reshape, {{"self", tests}, {"shape", Arg::List{-1}}});
    isIn = op.emit(OpKind::Any, {{"self", equal(column, flat)}, {"dim", Arg::List{-1}}});
  }
  return op.constant("invert") == Arg(true) ? op.emit(OpKind::LogicalNot, {{"self", isIn}}) : isIn;
}

namespace {
/// The number of elements of `sorted` before each of `values` along the last dimension. A NaN among
/// `values` comes after all of them.
Arg search(OpImporter &op, const Arg &sorted, const Arg &values) {
  const Arg side = op.constant("side");
  const bool isRight = op.constant("right") == Arg(true) || side == Arg("right");
  const auto count = [&](const Arg &elements, const Arg &numbers) {
    Arg isBehind =
        op.emit(isRight ? OpKind::Gt : OpKind::Ge, {{"self", elements}, {"other", numbers}});
    Arg isBefore = op.emit(OpKind::LogicalNot, {{"self", isBehind}});
    return op.emit(OpKind::Sum, {{"self", isBefore}, {"dim", Arg::List{-1}}});
  };
  const auto unsqueezed = [&](const Arg &tensor, int64_t dim) {
    return op.emit(OpKind::Unsqueeze, {{"self", tensor}, {"dim", dim}});
  };
  const auto countEach = [&] { return count(unsqueezed(sorted, -2), unsqueezed(values, -1)); };
  const auto countOne = [&] { return count(sorted, values); };
  Arg places =
      values.asNumber() ? countOne() : op.chooseBranch(op.hasRank(values, 0), countOne, countEach);
  return op.constant("out_int32") == Arg(true)
             ? op.emit(OpKind::To, {{"self", places}, {"dtype", DType::I32}})
             : places;
}
} // namespace

Arg importSearchSorted(OpImporter &op) {
  Arg sorted = op.arg("sorted_sequence");
  if (const Arg sorter = op.arg("sorter"); !sorter.isNone())
    sorted = op.emit(OpKind::Gather, {{"self", sorted}, {"dim", -1}, {"index", sorter}});
  return search(op, sorted, op.arg("self"));
}

Arg importBucketize(OpImporter &op) {
  return search(op, op.arg("boundaries"), op.arg("self"));
}

} // namespace cgc::frontend

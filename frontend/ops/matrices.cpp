// Op functions: norms, products and statistics of vectors and matrices.
#include "frontend/ops/op_import.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

namespace cgc::frontend {

using ir::Arg;
using ir::OpKind;

Arg importDist(OpImporter &op) {
  Arg difference = op.emit(OpKind::Sub, {{"self", op.arg("self")}, {"other", op.arg("other")}});
  return op.emit(OpKind::LinalgVectorNorm, {{"self", difference}, {"ord", op.arg("p")}});
}

namespace {
Arg vectorNorm(OpImporter &op, const Arg &ord, const Arg &dim) {
  return op.emit(OpKind::LinalgVectorNorm, {{"self", op.arg("self")},
                                            {"ord", ord},
                                            {"dim", dim},
                                            {"keepdim", op.arg("keepdim")},
                                            {"dtype", op.arg("dtype")}});
}

/// The norm of the matrices in two dimensions: the largest or least sum of magnitudes of a column
/// or row, or that of all elements as a vector. Others are made of singular values.
Arg matrixNorm(OpImporter &op, const Arg &ord, const Arg &dims) {
  if (ord == Arg("fro"))
    return vectorNorm(op, 2, dims);
  const double order = std::abs(ord.asNumber().value_or(0));
  if ((order != 1 && !std::isinf(order)) || !dims.isList() || dims.list().size() != 2)
    return op.refuse(ir::Cause::Factorization);
  Arg self = op.emit(OpKind::To, {{"self", op.arg("self")}, {"dtype", op.arg("dtype")}});
  const Arg::List summed = {dims.list()[order == 1 ? 0 : 1]},
                  compared = {dims.list()[order == 1 ? 1 : 0]};
  Arg sums = op.emit(
      OpKind::Sum,
      {{"self", op.emit(OpKind::Abs, {{"self", self}})}, {"dim", summed}, {"keepdim", true}});
  Arg kept = op.emit(*ord.asNumber() > 0 ? OpKind::Amax : OpKind::Amin,
                     {{"self", sums}, {"dim", compared}, {"keepdim", true}});
  return op.chooseBranch(
      op.arg("keepdim"), [&] { return kept; },
      [&] { return op.emit(OpKind::Squeeze, {{"self", kept}, {"dim", dims}}); });
}
} // namespace

Arg importMatrixNorm(OpImporter &op) {
  return matrixNorm(op, op.constant("ord"), op.arg("dim"));
}

Arg importLinalgNorm(OpImporter &op) {
  const Arg ord = op.constant("ord"), dim = op.arg("dim"), self = op.arg("self");
  if (ord.isNone())
    return vectorNorm(op, 2, dim);
  if (dim.isList())
    return dim.list().size() == 2 ? matrixNorm(op, ord, dim) : vectorNorm(op, ord, dim);
  const Arg matrixDims = Arg::List{-2, -1};
  if (!ord.asNumber())
    return matrixNorm(op, ord, matrixDims);
  const Arg isMatrix = op.hasRank(self, 2);
  const double order = std::abs(*ord.asNumber());
  if (order != 1 && !std::isinf(order)) {
    op.refuseIf(isMatrix, "the norm of a matrix that is made of its singular values");
    return vectorNorm(op, ord, dim);
  }
  return op.chooseBranch(
      isMatrix, [&] { return matrixNorm(op, ord, matrixDims); },
      [&] { return vectorNorm(op, ord, dim); });
}

Arg importVecdot(OpImporter &op) {
  Arg products = op.emit(OpKind::Mul, {{"self", op.arg("x")}, {"other", op.arg("y")}});
  return op.emit(OpKind::Sum, {{"self", products}, {"dim", Arg::List{op.arg("dim")}}});
}

Arg importMultiDot(OpImporter &op) {
  const bool isChain = !op.arg("matrices").isNone();
  const Arg::List factors = op.tensors(isChain ? "matrices" : "tensors");
  if (factors.empty())
    return op.refused();
  Arg product = factors.front();
  for (const Arg &factor : llvm::drop_begin(factors))
    product = op.emit(OpKind::Matmul, {{"self", product}, {"other", factor}});
  return product;
}

Arg importCross(OpImporter &op) {
  const Arg dim = op.arg("dim");
  if (dim.isNone())
    return op.refuse("cgc takes a cross product along a dimension that the call names; write dim");
  // The element `shift` places behind each.
  const auto shifted = [&](llvm::StringRef name, int64_t shift) {
    return op.emit(
        OpKind::Roll,
        {{"self", op.arg(name)}, {"shifts", Arg::List{-shift}}, {"dims", Arg::List{dim}}});
  };
  const auto product = [&](int64_t first, int64_t second) {
    Arg self = shifted("self", first);
    return op.emit(OpKind::Mul, {{"self", self}, {"other", shifted("other", second)}});
  };
  Arg forward = product(1, 2);
  return op.emit(OpKind::Sub, {{"self", forward}, {"other", product(2, 1)}});
}

Arg importTrace(OpImporter &op) {
  return op.emit(OpKind::Sum, {{"self", op.emit(OpKind::Diagonal, {{"self", op.arg("self")}})}});
}

Arg importDiag(OpImporter &op) {
  const Arg self = op.arg("self"), offset = op.arg("diagonal");
  return op.chooseBranch(
      op.hasRank(self, 1),
      [&] { return op.emit(OpKind::DiagEmbed, {{"self", self}, {"offset", offset}}); },
      [&] {
        Arg diagonal = op.emit(OpKind::Diagonal, {{"self", self}, {"offset", offset}});
        return op.emit(OpKind::Clone, {{"self", diagonal}});
      });
}

Arg importDiagflat(OpImporter &op) {
  Arg flat = op.emit(OpKind::Reshape, {{"self", op.arg("self")}, {"shape", Arg::List{-1}}});
  return op.emit(OpKind::DiagEmbed, {{"self", flat}, {"offset", op.arg("offset")}});
}

Arg importLinalgVander(OpImporter &op) {
  const Arg x = op.arg("x");
  const Arg count = op.argOr("N", op.sizeOf(x, -1));
  const Arg column = op.emit(OpKind::Unsqueeze, {{"self", x}, {"dim", -1}});
  const auto dtypeOf = [&](const Arg &tensor) {
    return op.emit(OpKind::PrimDType, {{"self", tensor}});
  };
  Arg width = op.emit(OpKind::Sub, {{"self", count}, {"other", 1}});
  Arg ones =
      op.emit(OpKind::Full, {{"size", Arg::List{width}}, {"fill_value", 1}, {"dtype", dtypeOf(x)}});
  const Arg powers =
      op.emit(OpKind::Cumprod,
              {{"self", op.emit(OpKind::Mul, {{"self", column}, {"other", ones}})}, {"dim", -1}});
  Arg first =
      op.emit(OpKind::FullLike, {{"self", column}, {"fill_value", 1}, {"dtype", dtypeOf(powers)}});
  return op.emit(OpKind::Cat, {{"tensors", Arg::List{first, powers}}, {"dim", -1}});
}

Arg importVander(OpImporter &op) {
  const Arg rising = importLinalgVander(op);
  return op.constant("increasing") == Arg(true)
             ? rising
             : op.emit(OpKind::Flip, {{"self", rising}, {"dims", Arg::List{-1}}});
}

/// The sum over i and j of input1[..., i] * weight[o, i, j] * input2[..., j], plus bias[o].
Arg importBilinear(OpImporter &op) {
  const Arg weight = op.arg("weight"), bias = op.arg("bias");
  Arg rows = op.emit(OpKind::Transpose, {{"self", weight}, {"dim0", 0}, {"dim1", 1}});
  rows = op.emit(OpKind::Flatten, {{"self", rows}, {"start_dim", 1}, {"end_dim", 2}});
  Arg products = op.emit(OpKind::Matmul, {{"self", op.arg("input1")}, {"other", rows}});
  products = op.emit(OpKind::Unflatten,
                     {{"self", products},
                      {"dim", -1},
                      {"sizes", Arg::List{op.sizeOf(weight, 0), op.sizeOf(weight, 2)}}});
  Arg column = op.emit(OpKind::Unsqueeze, {{"self", op.arg("input2")}, {"dim", -1}});
  Arg result = op.emit(OpKind::Matmul, {{"self", products}, {"other", column}});
  result = op.emit(OpKind::Squeeze, {{"self", result}, {"dim", Arg::List{-1}}});
  return bias.isNone() ? result : op.emit(OpKind::Add, {{"self", result}, {"other", bias}});
}

namespace {
/// The covariances of the rows of 'self', which are observations in columns.
Arg covariance(OpImporter &op, const Arg &correction) {
  Arg self = op.arg("self");
  const Arg isMatrix =
      op.emit(OpKind::Gt, {{"self", op.emit(OpKind::Dim, {{"self", self}})}, {"other", 1}});
  const Arg rows = op.chooseBranch(
      isMatrix, [&] { return self; },
      [&] { return op.emit(OpKind::Reshape, {{"self", self}, {"shape", Arg::List{1, -1}}}); });
  const Arg count = op.sizeOf(rows, 1);
  Arg sum = op.emit(OpKind::Sum, {{"self", rows}, {"dim", Arg::List{1}}, {"keepdim", true}});
  Arg mean = op.emit(OpKind::Div, {{"self", sum}, {"other", count}});
  const Arg centered = op.emit(OpKind::Sub, {{"self", rows}, {"other", mean}});
  Arg transposed = op.emit(OpKind::Transpose, {{"self", centered}, {"dim0", 0}, {"dim1", 1}});
  Arg products = op.emit(OpKind::Matmul, {{"self", centered}, {"other", transposed}});
  Arg degrees = op.emit(OpKind::Sub, {{"self", count}, {"other", correction}});
  degrees = op.emit(OpKind::Maximum, {{"self", degrees}, {"other", 0}});
  return op.emit(OpKind::Squeeze,
                 {{"self", op.emit(OpKind::Div, {{"self", products}, {"other", degrees}})}});
}
} // namespace

Arg importCov(OpImporter &op) {
  return covariance(op, op.arg("correction"));
}

Arg importCorrcoef(OpImporter &op) {
  const Arg covariances = covariance(op, 1);
  const auto divided = [&](const Arg &a, const Arg &b) {
    return op.emit(OpKind::Div, {{"self", a}, {"other", b}});
  };
  return op.chooseBranch(
      op.hasRank(covariances, 0), [&] { return divided(covariances, covariances); },
      [&] {
        Arg variances = op.emit(OpKind::Diagonal, {{"self", covariances}});
        const Arg deviations = op.emit(OpKind::Sqrt, {{"self", variances}});
        Arg column = op.emit(OpKind::Unsqueeze, {{"self", deviations}, {"dim", -1}});
        Arg quotients = divided(divided(covariances, column), deviations);
        return op.emit(OpKind::Clamp, {{"self", quotients}, {"min", -1}, {"max", 1}});
      });
}

} // namespace cgc::frontend

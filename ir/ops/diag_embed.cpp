// aten.diag_embed: vectors as diagonals of matrices.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

#include <algorithm>

namespace cgc::ir {
namespace {

/// The dimensions of the result that are rows and columns, and the size of both.
struct DiagEmbedDims {
  int64_t rows, columns, size;
};
Result<DiagEmbedDims> diagEmbedDims(const InferArgs &args) {
  const TensorType &self = args.tensor("self");
  if (self.rank() == 0)
    return rules::mismatch("self", "a tensor with dimensions", self);
  CGC_ASSIGN_OR_RETURN(const int64_t rows,
                       rules::wrapDim("dim1", args.integer("dim1"), self.rank() + 1));
  CGC_ASSIGN_OR_RETURN(const int64_t columns,
                       rules::wrapDim("dim2", args.integer("dim2"), self.rank() + 1));
  if (rows == columns)
    return rules::mismatch("dim2", "another dimension than 'dim1'", columns);
  constexpr int64_t kMost = int64_t{1} << 40; // No offset overflows the size.
  const int64_t offset = args.integer("offset");
  if (offset > kMost || offset < -kMost)
    return rules::mismatch("offset", "between -2^40 and 2^40", offset);
  return DiagEmbedDims{rows, columns, self.sizes.back() + std::abs(offset)};
}

Status inferDiagEmbed(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(const DiagEmbedDims dims, diagEmbedDims(args));
  Dims sizes = self.sizes;
  sizes.pop_back();
  for (int64_t dim : {std::min(dims.rows, dims.columns), std::max(dims.rows, dims.columns)})
    sizes.insert(sizes.begin() + dim, dims.size);
  return rules::addDense(results, self.dtype, sizes);
}

/// A diagonal matrix, padded by the offset, with its dimensions moved to their places.
Result<Values> defineDiagEmbed(OpBuilder &b) {
  CGC_ASSIGN_OR_RETURN(const DiagEmbedDims dims, diagEmbedDims(b.args()));
  const TensorType &self = b.input("self")->tensor();
  Dims square = self.sizes;
  square.push_back(self.sizes.back());
  Value *rows = b.expand(b.call(OpKind::Unsqueeze, {b.arg("self"), -1}), square);
  Value *isOff = b.call(OpKind::LogicalNot, {gradient::identityMatrix(b, self.sizes.back())});
  Value *matrix = b.call(OpKind::MaskedFill, {rows, isOff, 0});
  const int64_t offset = b.args().integer("offset");
  const int64_t right = std::max<int64_t>(offset, 0), down = std::max<int64_t>(-offset, 0);
  if (offset != 0)
    matrix = b.call(OpKind::ConstantPadNd, {matrix, Arg::ints(Dims{right, down, down, right})});
  Dims order;
  int64_t next = 0;
  for (int64_t dim = 0; dim < self.rank() + 1; ++dim)
    order.push_back(dim == dims.rows      ? self.rank() - 1
                    : dim == dims.columns ? self.rank()
                                          : next++);
  return Values{b.permute(matrix, order)};
}

} // namespace

const OpDef defs::DiagEmbed = {
    .schema = "(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferDiagEmbed,
    .decompose = defineDiagEmbed,
    .doc = "Zeros with the last dimension of self as the diagonal of the new dimensions dim1 and "
           "dim2: the elements whose index in dim2 is that in dim1 plus offset.",
};

} // namespace cgc::ir

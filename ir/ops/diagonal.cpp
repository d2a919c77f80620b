// aten.diagonal: the diagonal of two dimensions.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/view_rules.h"

#include <algorithm>

namespace cgc::ir {
namespace {

Status inferDiagonal(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t dim1, rules::wrapDim("dim1", args.integer("dim1"), self.rank()));
  CGC_ASSIGN_OR_RETURN(int64_t dim2, rules::wrapDim("dim2", args.integer("dim2"), self.rank()));
  if (dim1 == dim2)
    return rules::mismatch("dim2", "another dimension than 'dim1'", dim2);
  // An offset beyond the tensor gives an empty diagonal.
  const int64_t offset = std::clamp(args.integer("offset"), -self.sizes[dim1], self.sizes[dim2]);
  const int64_t row = std::max<int64_t>(-offset, 0), column = std::max<int64_t>(offset, 0);
  const int64_t length = std::min(self.sizes[dim1] - row, self.sizes[dim2] - column);
  Dims sizes, strides;
  for (int64_t d = 0; d < self.rank(); ++d)
    if (d != dim1 && d != dim2) {
      sizes.push_back(self.sizes[d]);
      strides.push_back(self.strides[d]);
    }
  sizes.push_back(length);
  strides.push_back(self.strides[dim1] + self.strides[dim2]);
  return rules::addView(results, self, sizes, strides,
                        length == 0 ? 0 : row * self.strides[dim1] + column * self.strides[dim2]);
}

/// The diagonal of a square matrix of zeros, which is then padded to the matrix that it came from.
Status backwardDiagonal(GradientBuilder &b) {
  const TensorType &self = b.input("self")->tensor();
  const InferArgs args = b.args();
  CGC_ASSIGN_OR_RETURN(const int64_t dim1,
                       rules::wrapDim("dim1", args.integer("dim1"), self.rank()));
  CGC_ASSIGN_OR_RETURN(const int64_t dim2,
                       rules::wrapDim("dim2", args.integer("dim2"), self.rank()));
  const int64_t rows = self.sizes[dim1], columns = self.sizes[dim2];
  const int64_t offset = std::clamp(args.integer("offset"), -rows, columns);
  const int64_t row = std::max<int64_t>(-offset, 0), column = std::max<int64_t>(offset, 0);
  const int64_t length = b.grad()->tensor().sizes.back();
  Value *identity = gradient::identityMatrix(b, length);
  Value *grad = b.where(identity, b.call(OpKind::Unsqueeze, {b.grad(), -1}));
  grad =
      b.call(OpKind::ConstantPadNd,
             {grad, Arg::ints(Dims{column, columns - column - length, row, rows - row - length})});
  Dims order; // The dimensions of the result lie behind all others.
  int64_t next = 0;
  for (int64_t d = 0; d < self.rank(); ++d)
    order.push_back(d == dim1 ? self.rank() - 2 : d == dim2 ? self.rank() - 1 : next++);
  b.set("self", b.call(OpKind::Permute, {grad, Arg::ints(order)}));
  return Status::ok();
}

} // namespace

const OpDef defs::Diagonal = {
    .schema = "(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    .traits = kPure | kView,
    .infer = inferDiagonal,
    .batch =
        [](const BatchCall &call) {
          const TensorType &self = call.args.tensor("self");
          llvm::SmallVector<bool, 6> dropped(self.rank(), false);
          dropped[batch::dimOf(call, self, "dim1")] = true;
          dropped[batch::dimOf(call, self, "dim2")] = true;
          return batch::Join(call).add(call.args["self"], batch::reduced(dropped, false)).state();
        },
    .gradient = backwardDiagonal,
    .doc = "A view of the elements whose index in dim2 is that in dim1 plus offset. These "
           "dimensions are dropped; the diagonal is the last dimension.",
};

} // namespace cgc::ir

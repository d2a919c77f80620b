// reduction_rules: the type rules of reductions that several ops share.
#include "ir/ops/reduction_rules.h"

namespace cgc::ir::rules {

Status extremes(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(auto reduced, listedDims(args, "dim", self.rank()));
  for (int64_t d = 0; d < self.rank(); ++d)
    if (reduced[d] && self.sizes[d] == 0)
      return mismatch("self", "nonempty in every reduced dimension", self);
  return addDense(results, self.dtype, reducedSizes(self.sizes, reduced, args.boolean("keepdim")));
}

Status indexOfExtreme(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  if (self.dtype == DType::Bool)
    return mismatch("self", "of a numeric dtype", self);
  llvm::SmallVector<bool, 6> reduced(self.rank(), args.isNone("dim"));
  if (!args.isNone("dim")) {
    CGC_ASSIGN_OR_RETURN(int64_t dim, wrapDim("dim", args.integer("dim"), self.rank()));
    if (self.rank() > 0)
      reduced[dim] = true;
  }
  for (int64_t d = 0; d < self.rank(); ++d)
    if (reduced[d] && self.sizes[d] == 0)
      return mismatch("self", "nonempty in every reduced dimension", self);
  return addDense(results, DType::I64, reducedSizes(self.sizes, reduced, args.boolean("keepdim")));
}

Status extremeAndIndex(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t dim, wrapDim("dim", args.integer("dim"), self.rank()));
  llvm::SmallVector<bool, 6> reduced(self.rank(), false);
  if (self.rank() > 0) {
    reduced[dim] = true;
    if (self.sizes[dim] == 0)
      return mismatch("self", "nonempty in dimension " + llvm::Twine(dim), self);
  }
  const Dims sizes = reducedSizes(self.sizes, reduced, args.boolean("keepdim"));
  CGC_TRY(addDense(results, self.dtype, sizes));
  return addDense(results, DType::I64, sizes);
}

Status elementsAndIndices(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_TRY(wrapDim("dim", args.integer("dim"), self.rank()).status());
  CGC_TRY(addDense(results, self.dtype, self.sizes));
  return addDense(results, DType::I64, self.sizes);
}

Status truth(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(auto reduced, listedDims(args, "dim", self.rank()));
  if (!args.isNone("dim") && args.ints("dim").empty())
    reduced.assign(self.rank(), false);
  return addDense(results, self.dtype == DType::U8 ? DType::U8 : DType::Bool,
                  reducedSizes(self.sizes, reduced, args.boolean("keepdim")));
}

Status floatingReduction(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(auto reduced, listedDims(args, "dim", self.rank()));
  if (!isFloating(self.dtype))
    return mismatch("self", "of a floating dtype", self);
  return addDense(results, self.dtype, reducedSizes(self.sizes, reduced, args.boolean("keepdim")));
}

DType accumulationDType(const InferArgs &args) {
  if (!args.isNone("dtype"))
    return args.dtype("dtype");
  const DType dtype = args.tensor("self").dtype;
  return isFloating(dtype) ? dtype : DType::I64;
}

Status accumulated(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_TRY(wrapDim("dim", args.integer("dim"), self.rank()).status());
  const DType dtype = accumulationDType(args);
  if (dtype == DType::Bool)
    return refuse("expected 'dtype' to be numeric, got bool");
  return addDense(results, dtype, self.sizes);
}

Status softmax(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_TRY(wrapDim("dim", args.integer("dim"), self.rank()).status());
  const DType dtype = args.isNone("dtype") ? self.dtype : args.dtype("dtype");
  if (!isFloating(dtype))
    return mismatch("self", "of a floating dtype, or 'dtype' to be one", self);
  return addDense(results, dtype, self.sizes);
}

} // namespace cgc::ir::rules

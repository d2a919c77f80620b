// view_rules: helpers of the type rules of view ops: strides after a reshape, splitting a
// dimension.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Returns strides under which the elements of `type` in row-major order have `sizes` without a
/// copy; nullopt if no such strides exist. Both must have the same number of elements.
std::optional<Dims> viewStrides(const TensorType &type, llvm::ArrayRef<int64_t> sizes);
/// Replaces the at most one -1 in `sizes`, the argument named `arg`, so that there are `count`
/// elements.
Result<Dims> inferSize(llvm::StringRef arg, Dims sizes, int64_t count);
/// Adds `type` with `sizes` (same number of elements): a view if the strides allow it, otherwise
/// dense.
Status addReshaped(Results &results, const TensorType &type, llvm::ArrayRef<int64_t> sizes);

/// Returns the argument 'dim' counted from the front of 'self'. Refuses a 0-d 'self'.
Result<int64_t> dimOfSelf(const InferArgs &args);
/// Refuses a result count above the limit, which no real model reaches.
Status checkResultCount(int64_t count);
/// Adds `count` views of `part` elements each along dimension `dim`; the last takes the remainder.
Status addEqualParts(Results &results, const TensorType &self, int64_t dim, int64_t part,
                     int64_t count);
/// Adds views of the sizes `parts`, the argument named `arg`, which must add up to dimension `dim`.
Status addParts(Results &results, const TensorType &self, int64_t dim, llvm::StringRef arg,
                llvm::ArrayRef<int64_t> parts);
/// Adds the view that aten.slice returns for its arguments; 'self' must have a dimension.
Status addSlice(const InferArgs &args, Results &results);
/// Adds the view that aten.select returns for its arguments.
Status addSelect(const InferArgs &args, Results &results);
/// Adds the view at `index`, which must be in range, of dimension `dim`, and drops the dimension.
Status addSelected(Results &results, const TensorType &self, int64_t dim, int64_t index);

} // namespace cgc::ir::rules

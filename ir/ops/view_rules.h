// view_rules: what the rules of view ops share: strides after a reshape, parts of a dimension.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Strides under which the elements of `type` in row-major order take `sizes` without a copy;
/// nothing if there are none. Both must have the same number of elements.
std::optional<Dims> viewStrides(const TensorType &type, llvm::ArrayRef<int64_t> sizes);
/// `sizes`, an argument called `arg`, with at most one -1 replaced so that there are `count`
/// elements.
Result<Dims> inferSize(llvm::StringRef arg, Dims sizes, int64_t count);
/// Adds `type` with `sizes` (same number of elements): a view if the strides allow it, else dense.
Status addReshaped(Results &results, const TensorType &type, llvm::ArrayRef<int64_t> sizes);

/// `dim` of 'self' from the argument 'dim'; refuses a 0-d 'self'.
Result<int64_t> dimOfSelf(const InferArgs &args);
/// Refuses more results than any model has.
Status checkResultCount(int64_t count);
/// Adds views of `part` elements each of dimension `dim`, `count` of them; the last takes what is
/// left.
Status addEqualParts(Results &results, const TensorType &self, int64_t dim, int64_t part,
                     int64_t count);
/// Adds views of these sizes, an argument called `arg`, which must add up to dimension `dim`.
Status addParts(Results &results, const TensorType &self, int64_t dim, llvm::StringRef arg,
                llvm::ArrayRef<int64_t> parts);
/// Adds the view at `index` (inside) of dimension `dim`, which is dropped.
Status addSelected(Results &results, const TensorType &self, int64_t dim, int64_t index);

} // namespace cgc::ir::rules

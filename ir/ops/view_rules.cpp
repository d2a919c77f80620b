// view_rules: helpers of the type rules of view ops.
#include "ir/ops/view_rules.h"

#include <algorithm>

namespace cgc::ir::rules {

std::optional<Dims> viewStrides(const TensorType &type, llvm::ArrayRef<int64_t> sizes) {
  if (type.numElements() == 0)
    return llvm::ArrayRef(type.sizes) == sizes ? type.strides : contiguousStrides(sizes);
  if (type.rank() == 0)
    return Dims(sizes.size(), 1);
  // Walks both shapes from the last dimension. Each maximal run of source dimensions that are dense
  // relative to each other must be covered exactly by a run of new dimensions.
  Dims strides(sizes.size(), 1);
  int64_t next = static_cast<int64_t>(sizes.size()) - 1;
  int64_t runElements = 1;
  int64_t runStride = type.strides.empty() ? 1 : type.strides.back();
  for (int64_t dim = type.rank() - 1; dim >= 0; --dim) {
    runElements *= type.sizes[dim];
    bool runEnds =
        dim == 0 || (type.sizes[dim - 1] != 1 && type.strides[dim - 1] != runElements * runStride);
    if (!runEnds)
      continue;
    int64_t covered = 1;
    while (next >= 0 && (covered < runElements || sizes[next] == 1)) {
      strides[next] = covered * runStride;
      covered *= sizes[next--];
    }
    if (covered != runElements)
      return std::nullopt;
    if (dim > 0) {
      runElements = 1;
      runStride = type.strides[dim - 1];
    }
  }
  return next < 0 ? std::optional(strides) : std::nullopt;
}

Result<Dims> inferSize(llvm::StringRef arg, Dims sizes, int64_t count) {
  std::optional<size_t> unknown;
  int64_t known = 1;
  auto fail = [&] {
    return refuse("expected '" + arg + "' to have " + llvm::Twine(count) + " elements, got " +
                  toString(sizes));
  };
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1 && !unknown)
      unknown = i;
    else if (sizes[i] < 0 || __builtin_mul_overflow(known, sizes[i], &known))
      return fail();
  }
  if (!unknown)
    return known == count ? Result<Dims>(sizes) : fail();
  if (known == 0 || count % known != 0)
    return fail();
  sizes[*unknown] = count / known;
  return sizes;
}

Status addReshaped(Results &results, const TensorType &type, llvm::ArrayRef<int64_t> sizes) {
  CGC_TRY(checkSizes(type.dtype, sizes));
  if (auto strides = viewStrides(type, sizes))
    return addView(results, type, Dims(sizes), *strides);
  return addDense(results, type.dtype, sizes);
}

Result<int64_t> dimOfSelf(const InferArgs &args) {
  const TensorType &self = args.tensor("self");
  if (self.rank() == 0)
    return mismatch("self", "of rank 1 or more", self);
  return wrapDim("dim", args.integer("dim"), self.rank());
}

Status checkResultCount(int64_t count) {
  constexpr int64_t max = 1 << 16;
  if (count > max)
    return refuse("the op would have " + llvm::Twine(count) + " results, more than the limit of " +
                  llvm::Twine(max));
  return Status::ok();
}

Status addEqualParts(Results &results, const TensorType &self, int64_t dim, int64_t part,
                     int64_t count) {
  CGC_TRY(checkResultCount(count));
  for (int64_t i = 0; i < count; ++i) {
    Dims sizes = self.sizes;
    sizes[dim] = std::min(part, self.sizes[dim] - i * part);
    CGC_TRY(addView(results, self, sizes, self.strides, i * part * self.strides[dim]));
  }
  return Status::ok();
}

Status addParts(Results &results, const TensorType &self, int64_t dim, llvm::StringRef arg,
                llvm::ArrayRef<int64_t> parts) {
  CGC_TRY(checkResultCount(static_cast<int64_t>(parts.size())));
  int64_t start = 0;
  for (int64_t part : parts) {
    if (part < 0 || part > self.sizes[dim] - start) // Too large or negative: never fits.
      return refuse("expected '" + arg + "' to add up to " + llvm::Twine(self.sizes[dim]) +
                    ", got " + toString(parts));
    Dims sizes = self.sizes;
    sizes[dim] = part;
    CGC_TRY(addView(results, self, sizes, self.strides, start * self.strides[dim]));
    start += part;
  }
  if (start != self.sizes[dim])
    return refuse("expected '" + arg + "' to add up to " + llvm::Twine(self.sizes[dim]) + ", got " +
                  toString(parts));
  return Status::ok();
}

Status addSelected(Results &results, const TensorType &self, int64_t dim, int64_t index) {
  Dims sizes = self.sizes, strides = self.strides;
  sizes.erase(sizes.begin() + dim);
  strides.erase(strides.begin() + dim);
  return addView(results, self, sizes, strides, index * self.strides[dim]);
}

Status addSlice(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t dim, dimOfSelf(args));
  int64_t step = args.integer("step"), size = self.sizes[dim];
  if (step < 1)
    return mismatch("step", "at least 1", step);
  auto bound = [&](llvm::StringRef name, int64_t fallback) {
    int64_t value = args.isNone(name) ? fallback : args.integer(name);
    return std::clamp<int64_t>(value < 0 ? value + size : value, 0, size);
  };
  int64_t start = bound("start", 0), end = std::max(start, bound("end", size));
  Dims sizes = self.sizes, strides = self.strides;
  sizes[dim] = (end - start) / step + ((end - start) % step != 0);
  if (__builtin_mul_overflow(strides[dim], step, &strides[dim]))
    return mismatch("step", "within the tensor's size", step);
  return addView(results, self, sizes, strides, start * self.strides[dim]);
}

Status addSelect(const InferArgs &args, Results &results) {
  const TensorType &self = args.tensor("self");
  CGC_ASSIGN_OR_RETURN(int64_t dim, dimOfSelf(args));
  int64_t index = args.integer("index"), size = self.sizes[dim];
  if (index < -size || index >= size)
    return refuse("expected 'index' to be inside dimension " + llvm::Twine(dim) + " of 'self' " +
                  toString(self.sizes) + ", got " + llvm::Twine(index));
  return addSelected(results, self, dim, index < 0 ? index + size : index);
}

} // namespace cgc::ir::rules

// Sums over dimensions: one kernel for each run of adjacent dimensions, the last one first.
#include "backend/ops/lower_sum.h"

#include "backend/kernels.h"
#include "backend/ops/lower_column_sums.h"
#include "runtime/kernels/rowwise/row_sums.h"
#include "runtime/kernels/rowwise/sum_rows.h"

namespace cgc::backend {
namespace {

/// Which dimensions of `x` the node sums over.
llvm::SmallVector<bool, 6> summedDims(const ir::Node &node, const Place &x) {
  const auto rank = static_cast<int64_t>(x.sizes.size());
  const ir::Arg &dim = node.arg("dim");
  const auto dims = dim.isNone() ? std::nullopt : dim.asInts();
  llvm::SmallVector<bool, 6> summed(rank, !dims || dims->empty());
  if (dims && rank > 0)
    for (int64_t d : *dims)
      summed[(d + rank) % rank] = true;
  return summed;
}

/// Whether all dimensions but the last are summed.
bool sumsAllRows(llvm::ArrayRef<bool> isSummed) {
  return isSummed.size() >= 2 && !isSummed.back() &&
         !llvm::is_contained(isSummed.drop_back(), false);
}

/// A tensor of which `isSummed` says for each dimension whether sums run over it.
struct Summand {
  Place place;
  llvm::SmallVector<bool, 6> isSummed;
};

/// The tensor with all adjacent dimensions merged of which either all or none are summed, and
/// without those of size 1, so that every other dimension is summed. The last one is dense. A copy
/// if the strides do not allow it.
Summand merged(const Summand &of, BucketBuilder &builder) {
  const Place &x = of.place;
  const auto mergedCopy = [&] { return merged({densePlace(x, builder), of.isSummed}, builder); };
  Summand result{x, {}};
  ir::Dims &sizes = result.place.sizes, &strides = result.place.strides;
  sizes.clear();
  strides.clear();
  for (size_t d = 0; d < x.sizes.size(); ++d) {
    if (x.sizes[d] == 1)
      continue;
    if (result.isSummed.empty() || result.isSummed.back() != of.isSummed[d]) {
      result.isSummed.push_back(of.isSummed[d]);
      sizes.push_back(x.sizes[d]);
      strides.push_back(x.strides[d]);
    } else if (strides.back() == x.sizes[d] * x.strides[d]) {
      sizes.back() *= x.sizes[d];
      strides.back() = x.strides[d];
    } else {
      return mergedCopy();
    }
  }
  return strides.empty() || strides.back() == 1 ? result : mergedCopy();
}

/// Whether all summed dimensions are behind the others.
bool sumsRows(const Summand &of) {
  bool isBehind = false;
  for (auto [size, isSummed] : llvm::zip_equal(of.place.sizes, of.isSummed)) {
    if (isBehind && !isSummed && size != 1)
      return false;
    isBehind |= isSummed && size != 1;
  }
  return true;
}

/// Sums the rows of `x`, which is [..., columns], each in as many parts as `result` has for it.
void launchRowSums(const Place &x, int64_t columns, const SumOptions &options, const Place &result,
                   BucketBuilder &builder) {
  const int64_t rows = x.type().numElements() / columns,
                splits = result.type().numElements() / rows;
  const bool isLaunched = launch({.kernel = kernelNamed("row_sums", x.dtype),
                                  .blocks = rowSumsBlocks(rows, columns, splits),
                                  .threads = kRowSumsThreads,
                                  .reads = {densePlace(x, builder)},
                                  .writes = {result},
                                  .ints = {columns, options.squares, options.root},
                                  .floats = {options.factor}},
                                 builder);
  CGC_CHECK(isLaunched && "the kernel takes dense rows");
}

/// Sums the last dimension but one of `x`.
void launchSumRows(Place x, double factor, const Place &result, BucketBuilder &builder) {
  if (x.sizes.size() == 2) { // One batch of rows.
    x.sizes.insert(x.sizes.begin(), 1);
    x.strides.insert(x.strides.begin(), x.sizes[1] * x.strides[0]);
  }
  const std::optional<Place> batches = mergeLeading(x, 3);
  x = batches ? *batches : *mergeLeading(densePlace(x, builder), 3);
  const bool isLaunched = launch({.kernel = kernelNamed("sum_rows", x.dtype),
                                  .blocks = x.sizes[0] * sumRowsSlices(x.sizes[2], x.dtype),
                                  .threads = kSumRowsThreads,
                                  .reads = {x},
                                  .writes = {result},
                                  .floats = {factor}},
                                 builder);
  CGC_CHECK(isLaunched && "the kernel takes dense columns");
}

/// In how many parts to sum the rows of a merged tensor, so that several CTAs share a long row.
int64_t splitsOf(const Summand &of, const BucketBuilder &builder) {
  constexpr int64_t kLeastPart = 8192; // Elements for which a CTA of its own is worth it.
  if (of.isSummed.empty() || !of.isSummed.back())
    return 1;
  const int64_t columns = of.place.sizes.back(), rows = of.place.type().numElements() / columns;
  return std::min(builder.multiprocessors() / rows, (columns + kLeastPart - 1) / kLeastPart);
}

/// The last summed dimension of a merged tensor that has some.
size_t lastSum(const Summand &of) {
  return of.isSummed.size() - (of.isSummed.back() ? 1 : 2);
}

/// Sums the last summed dimension of a merged tensor, if there is any.
void launchLastSum(const Summand &of, const SumOptions &options, const Place &result,
                   BucketBuilder &builder) {
  const Place &x = of.place;
  if (llvm::is_contained(of.isSummed, true) && !of.isSummed.back())
    launchSumRows(x, options.factor, result, builder);
  else
    launchRowSums(x, of.isSummed.empty() || !of.isSummed.back() ? 1 : x.sizes.back(), options,
                  result, builder);
}

bool launchSums(Summand of, const SumOptions &options, const Place &result,
                BucketBuilder &builder) {
  const Place x = of.place;
  const auto isTaken = [](DType dtype) { return isFloating(dtype) && dtype != DType::F64; };
  const auto elements = static_cast<uint64_t>(x.type().numElements());
  const bool isPlain = !options.squares && !options.root && options.factor == 1;
  if (isPlain && sumsAllRows(of.isSummed) && launchColumnSums(x, result, builder))
    return true; // Its CTAs have fewer columns than those of sum_rows.
  if (builder.target() != DeviceKind::Cuda || !isTaken(x.dtype) || !isTaken(result.dtype) ||
      elements == 0 || elements > kRowSumsMostElements || (options.squares && !sumsRows(of)))
    return false;
  of = merged(of, builder);
  SumOptions rest = options;
  for (int64_t splits; (splits = splitsOf(of, builder)) > 1 || llvm::count(of.isSummed, true) > 1;
       of = merged(of, builder)) {
    ir::Dims sizes = of.place.sizes;
    llvm::SmallVector<bool, 6> isSummed = of.isSummed;
    if (splits > 1) {
      sizes.back() = splits;
    } else {
      sizes.erase(sizes.begin() + lastSum(of));
      isSummed.erase(isSummed.begin() + lastSum(of));
    }
    const Place sums = builder.temporary(DType::F32, sizes);
    launchLastSum(of, {.squares = rest.squares}, sums, builder);
    rest.squares = false;
    of = {sums, isSummed};
  }
  if (result.dtype == DType::F32 || result.dtype == of.place.dtype) {
    launchLastSum(of, rest, result, builder);
  } else {
    const Place sums = builder.temporary(DType::F32, result.sizes);
    launchLastSum(of, rest, sums, builder);
    builder.copy(sums, result);
  }
  return true;
}

} // namespace

int64_t elementsOfSum(const ir::Node &node, const Place &x) {
  int64_t elements = 1;
  for (auto [size, isSummed] : llvm::zip_equal(x.sizes, summedDims(node, x)))
    elements *= isSummed ? size : 1;
  return elements;
}

bool launchSums(const ir::Node &node, const Place &x, const SumOptions &options,
                const Place &result, BucketBuilder &builder) {
  return launchSums({x, summedDims(node, x)}, options, result, builder);
}

} // namespace cgc::backend

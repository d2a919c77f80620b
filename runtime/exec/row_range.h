// RowRange and BucketRun: the part of a caller's batch that one run of a bucket takes.
#pragma once

#include "runtime/plan/plan.h"

#include <optional>

namespace cgc {

/// Rows [begin, begin + count) of a batch of `total` rows.
struct RowRange {
  int64_t begin = 0, count = 0, total = 0;
  bool operator==(const RowRange &) const = default;
};

/// One run of the bucket of index `bucket` of an entry. Without `rows`, the caller's tensors have
/// the bucket's sizes. With `rows`, those with a batch dimension have `rows->total` rows there, of
/// which the run takes `rows->count`, at most the bucket's batch. The bucket's other rows are zeros
/// in the inputs and are not read in the outputs.
struct BucketRun {
  size_t bucket = 0;
  std::optional<RowRange> rows = {};
  bool operator==(const BucketRun &) const = default;
};

/// The bytes of a dense tensor with a batch dimension: `blocks` times all rows, of `rowBytes` bytes
/// each.
struct RowLayout {
  uint64_t blocks = 1, rowBytes = 0;
};

/// The layout of `tensor`, which has a batch dimension.
inline RowLayout rowLayout(const IoTensor &tensor) {
  RowLayout layout{1, dtypeSize(tensor.dtype)};
  for (int32_t d = 0; d < int32_t(tensor.sizes.size()); ++d)
    if (d != tensor.batchDim)
      (d < tensor.batchDim ? layout.blocks : layout.rowBytes) *= uint64_t(tensor.sizes[d]);
  return layout;
}

} // namespace cgc

// The view that attention kernels have of queries, keys, values and results, and the checks of
// them.
#pragma once

#include "runtime/kernels/kernel_table.h"

#include <optional>
#include <vector>

namespace cgc {

/// Strides in elements of a tensor [batch, heads, rows, columns] with dense columns.
struct HeadStrides {
  int64_t batch, head, row;
};

/// The strides of a tensor [batch, heads, rows, columns] of `dtype`. A stride of 0 broadcasts.
/// Nothing if the operand has other sizes, columns that are not dense, or an address or strides
/// that are no multiples of `vector` elements.
std::optional<HeadStrides> headStridesOf(const OperandView &operand, DType dtype, int64_t batch,
                                         int64_t heads, int64_t rows, int64_t columns,
                                         int64_t vector = 8);

/// The numbers of a launch of any attention kernel, in the order of kernels.def. Further ones
/// follow in some kernels; attention_split_kv has no `causal`.
struct AttentionNumbers {
  int64_t batch, heads, queries, keys, causal;

  static AttentionNumbers of(std::span<const int64_t> ints) {
    return {ints[0], ints[1], ints[2], ints[3], ints.size() > 4 ? ints[4] : 0};
  }
  /// The first `count` ints of a launch; those after these numbers are zeros.
  std::vector<int64_t> ints(size_t count) const {
    std::vector<int64_t> all = {batch, heads, queries, keys, causal};
    all.resize(count);
    return all;
  }
};

/// The arguments of a kernel of attention with an optional mask. Reads: q, k, v, mask or none.
/// Writes: out. The ints begin with AttentionNumbers; the float is the scale. The mask of batch b
/// is that of b % maskBatches, which divides the batch.
struct Heads {
  int64_t batch, heads, queries, keys, width;
  bool causal;
  double scale;
  HeadStrides q, k, v, mask, out;
  int64_t maskBatches;
  bool maskHasPairs; ///< Each row of the mask begins at a multiple of two elements.
};

/// Checks and returns the arguments of a kernel for heads of `columns` columns (attentionColumns),
/// all in `dtype`. InvalidFile if sizes, strides or numbers are not supported.
Result<Heads> headsOf(const LaunchView &launch, DType dtype, int64_t columns);

} // namespace cgc

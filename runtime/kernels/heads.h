// Heads: how attention kernels see queries, keys, values and results.
#pragma once

#include "runtime/kernels/arguments.h"

#include <algorithm>
#include <optional>

namespace cgc {

constexpr float kLog2e = 1.4426950408889634f;

/// Strides of a tensor [batch, heads, rows, ...] in elements; columns are dense.
struct HeadStrides {
  int64_t batch, head, row;
};

/// Strides of a tensor [batch, heads, rows, columns] with dense columns, broadcast where a stride
/// is 0; nothing if it is none of these sizes or not made of vectors of so many elements.
inline std::optional<HeadStrides> headStridesOf(const TensorView &t, DType dtype, int64_t batch,
                                                int64_t heads, int64_t rows, int64_t columns,
                                                int64_t vector = 8) {
  const int64_t sizes[] = {batch, heads, rows, columns};
  if (!t.data || t.dtype != dtype || !std::ranges::equal(t.sizes, sizes) ||
      reinterpret_cast<uintptr_t>(t.data) % (vector * dtypeSize(dtype)) != 0)
    return std::nullopt;
  if (t.strides.empty())
    return HeadStrides{heads * rows * columns, rows * columns, columns};
  for (int i = 0; i < 3; ++i)
    if (sizes[i] > 1 && t.strides[i] % vector != 0)
      return std::nullopt;
  if (columns > 1 && t.strides[3] != 1)
    return std::nullopt;
  return HeadStrides{t.strides[0], t.strides[1], t.strides[2]};
}

} // namespace cgc

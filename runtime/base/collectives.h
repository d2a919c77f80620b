// What all layers know of collectives, which the ranks of a distributed training compute together.
#pragma once

#include "runtime/base/dtype.h"

#include <cstdint>

namespace cgc {

/// The largest number of ranks that sizes in a plan are made for.
inline constexpr int64_t kMaxRanks = 1 << 20;

/// Whether ranks reduce elements of `dtype`: NCCL has no i16, and no sum of bool. A mean also needs
/// a floating dtype.
constexpr bool isReducible(DType dtype) {
  return dtype != DType::Bool && dtype != DType::I16;
}

} // namespace cgc

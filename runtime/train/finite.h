// allFinite: whether values have a NaN or an infinity.
#pragma once

#include "runtime/base/dtype.h"

#include <cstddef>
#include <span>

namespace cgc {

/// Whether `bytes`, dense elements of `dtype`, have neither a NaN nor an infinity.
bool allFinite(std::span<const std::byte> bytes, DType dtype);

} // namespace cgc

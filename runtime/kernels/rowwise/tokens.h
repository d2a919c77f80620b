// tokens_*: the check. The launch shape is in warp_rows.h.
#pragma once

#include "runtime/kernels/kernel_table.h"

namespace cgc {

/// A checked launch.
struct TokensLaunch {
  int64_t rows, tokens, columns; ///< `tokens`: of an image, with the class token.
  bool vectors;                  ///< All rows begin and end at multiples of 16 bytes.
};
Result<TokensLaunch> checkTokens(const LaunchView &launch, DType dtype);

} // namespace cgc

// Transforms many pictures on several threads.
#pragma once

#include "transform.h"

#include <optional>
#include <string>
#include <variant>

namespace cgc_images {

/// uint8 [height, width, 3], dense, in the caller's memory.
struct Pixels {
  const uint8_t *data;
  int64_t height, width;
};

/// A file's path, a file in memory, or pixels.
using Source = std::variant<std::string, std::span<const uint8_t>, Pixels>;

/// A picture's failure. Without a code the file is not empty and no JPEG, and others may read it.
struct Failure {
  std::optional<cgc_code> code;
  std::string message; ///< Completes "the picture ...".
};

/// Transforms sources[i] to `results` + i * the size of a result, on up to `threads` threads. A
/// picture that fails leaves its result as it is.
std::vector<std::optional<Failure>> transformAll(const Sizes &sizes,
                                                 const std::vector<Source> &sources,
                                                 const Result &results, int threads,
                                                 int64_t maxPixels);

} // namespace cgc_images

// Reads many pictures on several threads.
#pragma once

#include "transform.h"

#include <functional>
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

/// What becomes of picture `i`, which it reads to its end. Throws PictureError, and then has
/// written nothing.
using Consume = std::function<void(size_t i, RowReader &picture, Scratch &scratch)>;

/// Reads the sources on up to `threads` threads and calls `consume` with each. A file with a flaw
/// may be read twice.
std::vector<std::optional<Failure>> readAll(const std::vector<Source> &sources,
                                            const Consume &consume, int threads, int64_t maxPixels);

} // namespace cgc_images

// Upload of many pieces of host memory to one device buffer.
#pragma once

#include "runtime/base/status.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace cgc {

/// Bytes and their offset in the buffer.
struct UploadPiece {
  std::span<const std::byte> bytes;
  uint64_t offset = 0;
};

/// Fills `to` with the buffer's content from offset `begin` on: the bytes of the pieces, and zeros
/// between them. Pieces must be sorted by offset and must not overlap.
void gather(std::span<const UploadPiece> pieces, uint64_t begin, std::span<std::byte> to);

/// Writes the pieces, with zeros between them, to the `bytes` bytes at `buffer` on `device`.
/// Several threads fill pinned staging memory, which is copied in large chunks. Returns when all
/// copies are complete.
Status upload(std::span<const UploadPiece> pieces, std::byte *buffer, uint64_t bytes, int device);

} // namespace cgc

// Upload of many pieces of host memory into one device buffer.
#pragma once

#include "runtime/base/status.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace cgc {

/// Bytes and where in the buffer they go.
struct UploadPiece {
  std::span<const std::byte> bytes;
  uint64_t offset = 0;
};

/// Copies to `to` what the pieces put at `begin` and behind; zeros where no piece is. Pieces are in
/// the order of their offsets and do not overlap.
void gather(std::span<const UploadPiece> pieces, uint64_t begin, std::span<std::byte> to);

/// Copies the pieces, as for gather, to the `bytes` bytes at `buffer` on `device`: in large copies
/// from pinned memory, filled by a few threads. Returns when all is there.
Status upload(std::span<const UploadPiece> pieces, std::byte *buffer, uint64_t bytes, int device);

} // namespace cgc

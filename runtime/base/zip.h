// Zip: what the central directory of a zip archive says, without unpacking anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace cgc {

/// A file in a zip archive.
struct ZipEntry {
  std::string_view name; ///< Lies in the archive's bytes.
  bool isStored = false; ///< Its bytes stand in the archive as they are, not compressed.
  uint32_t crc = 0;      ///< CRC-32 of its bytes.
  uint64_t size = 0;     ///< Of its bytes, not compressed.
  uint64_t header = 0;   ///< Where the header before its bytes begins.
};

/// The entries of `zip`, in the directory's order; zip64 is understood. Only the end of the archive
/// and the directory are read. Nothing if the directory is missing or damaged.
std::optional<std::vector<ZipEntry>> zipEntries(std::span<const std::byte> zip);

/// The bytes of a stored entry; nothing if the archive does not have them all.
std::optional<std::span<const std::byte>> storedBytes(std::span<const std::byte> zip,
                                                      const ZipEntry &entry);

} // namespace cgc

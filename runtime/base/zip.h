// Zip: lists the entries of an archive from its central directory, without decompressing anything.
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
  std::string_view name; ///< Points into the archive's bytes.
  bool isStored = false; ///< The bytes are in the archive uncompressed.
  uint32_t crc = 0;      ///< CRC-32 of the uncompressed bytes.
  uint64_t size = 0;     ///< Uncompressed size in bytes.
  uint64_t header = 0;   ///< Offset of the local file header in the archive.
};

/// The entries of `zip`, in the directory's order. Understands zip64. Reads only the end of the
/// archive and the directory. std::nullopt if the directory is missing or damaged.
std::optional<std::vector<ZipEntry>> zipEntries(std::span<const std::byte> zip);

/// The bytes of a stored (uncompressed) entry, as a view into `zip`. std::nullopt if they do not
/// lie inside the archive.
std::optional<std::span<const std::byte>> storedBytes(std::span<const std::byte> zip,
                                                      const ZipEntry &entry);

} // namespace cgc

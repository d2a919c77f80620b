// ArchiveWriter: a zip of stored files, as torch.export.save writes it.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/CRC.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cgc::test {

/// Bytes of an integer, the lowest first.
inline std::string little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i, value >>= 8)
    out += static_cast<char>(value);
  return out;
}

/// Returns a zip of `members`, names with bytes, below the folder "m". `method`: 0 for stored.
inline std::string zipOf(const std::vector<std::pair<std::string, std::string>> &members,
                         uint16_t method = 0) {
  std::string zip, directory;
  for (const auto &[member, bytes] : members) {
    const std::string name = "m/" + member;
    const uint32_t crc =
        llvm::crc32(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
    // From the method to the length of the extra field, in both headers.
    const std::string fields = little(method, 2) + little(0, 4) + little(crc, 4) +
                               little(bytes.size(), 4) + little(bytes.size(), 4) +
                               little(name.size(), 2) + little(0, 2);
    directory += "PK\1\2" + little(0, 6) + fields + little(0, 10) + little(zip.size(), 4) + name;
    zip += "PK\3\4" + little(0, 4) + fields + name + bytes;
  }
  return zip + directory + "PK\5\6" + little(0, 4) + little(members.size(), 2) +
         little(members.size(), 2) + little(directory.size(), 4) + little(zip.size(), 4) +
         little(0, 2);
}

} // namespace cgc::test

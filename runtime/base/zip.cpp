// Zip: parses the end-of-central-directory record (with zip64, the record before it), then the
// directory entry by entry.
#include "runtime/base/zip.h"

#include "runtime/base/checked.h"

#include <algorithm>
#include <cstring>

namespace cgc {
namespace {

using namespace std::literals;

constexpr size_t kEndBytes = 22, kMaxComment = 65535, kLocatorBytes = 20, kEnd64Bytes = 56;
constexpr size_t kEntryBytes = 46, kHeaderBytes = 30;
constexpr uint32_t kInZip64Extra = 0xffffffff; ///< The value is in the zip64 extra field.

template <class T> T loadLittleEndian(std::string_view bytes, size_t at) {
  T value{};
  if (rangeInside(at, sizeof(T), bytes.size()))
    std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

/// `size` bytes from `offset`; empty if there are not that many.
std::string_view slice(std::string_view bytes, uint64_t offset, uint64_t size) {
  return rangeInside(offset, size, bytes.size()) ? bytes.substr(offset, size) : ""sv;
}

/// The central directory; empty if it is not found.
std::string_view directoryOf(std::string_view zip) {
  const size_t tailAt = zip.size() - std::min(zip.size(), kEndBytes + kMaxComment);
  const size_t found = zip.substr(tailAt).rfind("PK\5\6"sv);
  if (found == std::string_view::npos)
    return {};
  const size_t endAt = tailAt + found;
  const std::string_view end = slice(zip, endAt, kEndBytes);
  uint64_t size = loadLittleEndian<uint32_t>(end, 12), offset = loadLittleEndian<uint32_t>(end, 16);
  if (endAt >= kLocatorBytes && zip.substr(endAt - kLocatorBytes).starts_with("PK\6\7"sv)) {
    const std::string_view end64 =
        slice(zip, loadLittleEndian<uint64_t>(zip, endAt - kLocatorBytes + 8), kEnd64Bytes);
    if (!end64.starts_with("PK\6\6"sv))
      return {};
    size = loadLittleEndian<uint64_t>(end64, 40);
    offset = loadLittleEndian<uint64_t>(end64, 48);
  }
  return slice(zip, offset, size);
}

/// Reads the values that do not fit 32 bits from the zip64 part of the `extra` field into `entry`
/// and `packed`, the compressed size.
bool readLarge(std::string_view extra, uint64_t &packed, ZipEntry &entry) {
  while (extra.size() >= 4) {
    const auto id = loadLittleEndian<uint16_t>(extra, 0),
               bytes = loadLittleEndian<uint16_t>(extra, 2);
    std::string_view field = extra.substr(4, bytes);
    extra.remove_prefix(std::min<size_t>(extra.size(), 4 + size_t(bytes)));
    if (id != 1)
      continue;
    for (uint64_t *number : {&entry.size, &packed, &entry.header}) {
      if (*number != kInZip64Extra)
        continue;
      if (field.size() < 8)
        return false;
      *number = loadLittleEndian<uint64_t>(field, 0);
      field.remove_prefix(8);
    }
  }
  return true;
}

/// Parses the first entry and removes it from `directory`. std::nullopt if it is damaged.
std::optional<ZipEntry> takeEntry(std::string_view &directory) {
  if (directory.size() < kEntryBytes || !directory.starts_with("PK\1\2"sv))
    return std::nullopt;
  const size_t nameBytes = loadLittleEndian<uint16_t>(directory, 28);
  const size_t extraBytes = loadLittleEndian<uint16_t>(directory, 30);
  const size_t bytes =
      kEntryBytes + nameBytes + extraBytes + loadLittleEndian<uint16_t>(directory, 32);
  if (bytes > directory.size())
    return std::nullopt;
  ZipEntry entry{
      directory.substr(kEntryBytes, nameBytes), loadLittleEndian<uint16_t>(directory, 10) == 0,
      loadLittleEndian<uint32_t>(directory, 16), loadLittleEndian<uint32_t>(directory, 24),
      loadLittleEndian<uint32_t>(directory, 42)};
  uint64_t packed = loadLittleEndian<uint32_t>(directory, 20);
  if (!readLarge(directory.substr(kEntryBytes + nameBytes, extraBytes), packed, entry))
    return std::nullopt;
  directory.remove_prefix(bytes);
  return entry;
}

std::string_view asText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

} // namespace

std::optional<std::vector<ZipEntry>> zipEntries(std::span<const std::byte> zip) {
  std::string_view directory = directoryOf(asText(zip));
  if (directory.empty())
    return std::nullopt;
  std::vector<ZipEntry> entries;
  while (!directory.empty()) {
    const std::optional<ZipEntry> entry = takeEntry(directory);
    if (!entry)
      return std::nullopt;
    entries.push_back(*entry);
  }
  return entries;
}

std::optional<std::span<const std::byte>> storedBytes(std::span<const std::byte> zip,
                                                      const ZipEntry &entry) {
  const std::string_view header = slice(asText(zip), entry.header, kHeaderBytes);
  if (!header.starts_with("PK\3\4"sv))
    return std::nullopt;
  const uint64_t begin = entry.header + kHeaderBytes + loadLittleEndian<uint16_t>(header, 26) +
                         loadLittleEndian<uint16_t>(header, 28);
  if (!rangeInside(begin, entry.size, zip.size()))
    return std::nullopt;
  return zip.subspan(begin, entry.size);
}

} // namespace cgc

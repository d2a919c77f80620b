// Archive: walks the central directory over a mapping; LibTorch's own reader unpacks what is
// packed.
#include "frontend/archive.h"

#include "runtime/base/file.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/Endian.h"

#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <optional>

namespace cgc::frontend {
namespace {

using llvm::support::endian::read16le;
using llvm::support::endian::read32le;
using llvm::support::endian::read64le;

/// A file in the zip, as the central directory has it.
struct Record {
  llvm::StringRef name;
  uint16_t method = 0; ///< 0: stored as it is.
  uint32_t crc = 0;
  uint64_t packedSize = 0, size = 0, header = 0;
};

constexpr uint16_t kStored = 0;
constexpr size_t kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr size_t kEntryBytes = 46, kHeaderBytes = 30;
constexpr uint32_t kInExtra = 0xffffffff;

/// `size` bytes from `offset`; empty if the zip has not that many.
llvm::StringRef slice(llvm::StringRef zip, uint64_t offset, uint64_t size) {
  return offset <= zip.size() && size <= zip.size() - offset ? zip.substr(offset, size) : "";
}

/// The central directory; empty if it is not found.
llvm::StringRef directoryOf(llvm::StringRef zip) {
  size_t at = zip.rfind("PK\5\6");
  llvm::StringRef end = at == llvm::StringRef::npos ? "" : slice(zip, at, kEndBytes);
  if (end.empty())
    return "";
  uint64_t size = read32le(end.data() + 12), offset = read32le(end.data() + 16);
  llvm::StringRef locator = at < kLocatorBytes ? "" : slice(zip, at - kLocatorBytes, kLocatorBytes);
  if (locator.starts_with("PK\6\7")) {
    llvm::StringRef end64 = slice(zip, read64le(locator.data() + 8), kEnd64Bytes);
    if (!end64.starts_with("PK\6\6"))
      return "";
    size = read64le(end64.data() + 40);
    offset = read64le(end64.data() + 48);
  }
  return slice(zip, offset, size);
}

/// Takes the numbers that do not fit 32 bits from the zip64 part of the `extra` field.
bool readLarge(llvm::StringRef extra, Record &record) {
  while (extra.size() >= 4) {
    uint16_t id = read16le(extra.data()), bytes = read16le(extra.data() + 2);
    llvm::StringRef field = extra.substr(4, bytes);
    extra = extra.drop_front(std::min<size_t>(extra.size(), 4 + size_t(bytes)));
    if (id != 1)
      continue;
    for (uint64_t *number : {&record.size, &record.packedSize, &record.header}) {
      if (*number != kInExtra)
        continue;
      if (field.size() < 8)
        return false;
      *number = read64le(field.data());
      field = field.drop_front(8);
    }
  }
  return true;
}

/// Takes the first entry off `directory`.
std::optional<Record> takeRecord(llvm::StringRef &directory) {
  if (directory.size() < kEntryBytes || !directory.starts_with("PK\1\2"))
    return std::nullopt;
  const char *entry = directory.data();
  size_t nameBytes = read16le(entry + 28), extraBytes = read16le(entry + 30);
  size_t bytes = kEntryBytes + nameBytes + extraBytes + read16le(entry + 32);
  if (bytes > directory.size())
    return std::nullopt;
  Record record{directory.substr(kEntryBytes, nameBytes),
                read16le(entry + 10),
                read32le(entry + 16),
                read32le(entry + 20),
                read32le(entry + 24),
                read32le(entry + 42)};
  if (!readLarge(directory.substr(kEntryBytes + nameBytes, extraBytes), record))
    return std::nullopt;
  directory = directory.drop_front(bytes);
  return record;
}

uint32_t crcOf(const void *data, size_t size) {
  return llvm::crc32(llvm::ArrayRef<uint8_t>(static_cast<const uint8_t *>(data), size));
}

} // namespace

Status checkArchive(const std::string &path) {
  CGC_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  llvm::StringRef zip(reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size());
  const Status broken(Code::InvalidFile,
                      "the directory of the zip is damaged; export or copy the file again");
  llvm::StringRef directory = directoryOf(zip);
  if (directory.empty())
    return broken;
  caffe2::serialize::PyTorchStreamReader reader(path);
  while (!directory.empty()) {
    std::optional<Record> record = takeRecord(directory);
    if (!record)
      return broken;
    uint32_t crc = 0;
    if (record->method == kStored) {
      llvm::StringRef header = slice(zip, record->header, kHeaderBytes);
      if (!header.starts_with("PK\3\4"))
        return broken;
      uint64_t begin = record->header + kHeaderBytes + read16le(header.data() + 26) +
                       read16le(header.data() + 28);
      llvm::StringRef bytes = slice(zip, begin, record->size);
      if (bytes.size() != record->size)
        return broken;
      crc = crcOf(bytes.data(), bytes.size());
    } else {
      // The reader leaves out the folder that all records are in.
      auto [data, size] = reader.getRecord(record->name.split('/').second.str());
      crc = crcOf(data.get(), size);
    }
    if (crc != record->crc)
      return Status(Code::InvalidFile, "the record '" + record->name.str() +
                                           "' is damaged: its bytes do not have the checksum in "
                                           "the file; export or copy the file again");
  }
  return Status::ok();
}

} // namespace cgc::frontend

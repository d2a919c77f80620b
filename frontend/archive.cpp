// Archive: checksums over a mapping; LibTorch's own reader unpacks what is packed.
#include "frontend/archive.h"

#include "runtime/base/file.h"
#include "runtime/base/zip.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/CRC.h"

#include <caffe2/serialize/inline_container.h>

namespace cgc::frontend {
namespace {

uint32_t crcOf(const void *data, size_t size) {
  return llvm::crc32(llvm::ArrayRef<uint8_t>(static_cast<const uint8_t *>(data), size));
}

} // namespace

Status checkArchive(const std::string &path) {
  CGC_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  const Status broken(Code::InvalidFile,
                      "the directory of the zip is damaged; export or copy the file again");
  const auto entries = zipEntries(file.bytes());
  if (!entries)
    return broken;
  caffe2::serialize::PyTorchStreamReader reader(path);
  for (const ZipEntry &entry : *entries) {
    uint32_t crc = 0;
    if (entry.isStored) {
      const auto bytes = storedBytes(file.bytes(), entry);
      if (!bytes)
        return broken;
      crc = crcOf(bytes->data(), bytes->size());
    } else {
      // The reader leaves out the folder that all records are in.
      const size_t slash = entry.name.find('/');
      auto [data, size] = reader.getRecord(
          std::string(slash == std::string_view::npos ? "" : entry.name.substr(slash + 1)));
      crc = crcOf(data.get(), size);
    }
    if (crc != entry.crc)
      return Status(Code::InvalidFile, "the record '" + std::string(entry.name) +
                                           "' is damaged: its bytes do not have the checksum in "
                                           "the file; export or copy the file again");
  }
  return Status::ok();
}

} // namespace cgc::frontend

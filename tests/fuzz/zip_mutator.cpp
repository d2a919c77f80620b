// Mutator of zip archives: changes the bytes of one entry and updates the checksums.
#include "runtime/base/zip.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/CRC.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace cgc::fuzz {
namespace {

struct File {
  std::string name;
  std::vector<uint8_t> bytes;
};

template <class T> void put(std::vector<uint8_t> &out, T value) {
  const auto *bytes = reinterpret_cast<const uint8_t *>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(value));
}

void put(std::vector<uint8_t> &out, const std::string &text) {
  out.insert(out.end(), text.begin(), text.end());
}

/// Writes the fields that the local file header and the directory entry have in common.
void putSizes(std::vector<uint8_t> &out, const File &file) {
  put<uint32_t>(out, 0); // Time and date.
  put<uint32_t>(out, llvm::crc32(llvm::ArrayRef<uint8_t>(file.bytes)));
  put<uint32_t>(out, file.bytes.size());
  put<uint32_t>(out, file.bytes.size());
  put<uint16_t>(out, file.name.size());
  put<uint16_t>(out, 0);
}

/// A zip archive of these files, uncompressed.
std::vector<uint8_t> zipOf(const std::vector<File> &files) {
  std::vector<uint8_t> zip, directory;
  for (const File &file : files) {
    const uint32_t at = zip.size();
    put(zip, std::string("PK\3\4\24\0\0\0\0\0", 10));
    putSizes(zip, file);
    put(zip, file.name);
    zip.insert(zip.end(), file.bytes.begin(), file.bytes.end());
    put(directory, std::string("PK\1\2\24\0\24\0\0\0\0\0", 12));
    putSizes(directory, file);
    put(directory, std::string(10, '\0')); // Comment, disk, attributes.
    put<uint32_t>(directory, at);
    put(directory, file.name);
  }
  const uint32_t at = zip.size();
  zip.insert(zip.end(), directory.begin(), directory.end());
  put(zip, std::string("PK\5\6\0\0\0\0", 8));
  put<uint16_t>(zip, files.size());
  put<uint16_t>(zip, files.size());
  put<uint32_t>(zip, directory.size());
  put<uint32_t>(zip, at);
  put<uint16_t>(zip, 0);
  return zip;
}

/// The entries with their bytes; empty if `zip` is not a zip archive or an entry is compressed.
std::vector<File> filesOf(std::span<const std::byte> zip) {
  std::vector<File> files;
  const auto entries = zipEntries(zip);
  if (!entries)
    return {};
  for (const ZipEntry &entry : *entries) {
    const auto bytes = entry.isStored ? storedBytes(zip, entry) : std::nullopt;
    if (!bytes)
      return {};
    const auto *data = reinterpret_cast<const uint8_t *>(bytes->data());
    files.push_back({std::string(entry.name), {data, data + bytes->size()}});
  }
  return files;
}

} // namespace
} // namespace cgc::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  using namespace cgc::fuzz;
  std::minstd_rand random(seed);
  random.discard(1);
  std::vector<File> files = filesOf(std::as_bytes(std::span(data, size)));
  const unsigned how = random() % 16;
  if (files.empty() || how == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  const size_t victim = random() % files.size();
  if (how == 1) {
    files.erase(files.begin() + victim);
  } else if (how == 2) {
    files[victim].bytes = files[random() % files.size()].bytes;
  } else {
    std::vector<uint8_t> &bytes = files[victim].bytes;
    const size_t before = bytes.size();
    bytes.resize(before + 64);
    bytes.resize(LLVMFuzzerMutate(bytes.data(), before, bytes.size()));
  }
  const std::vector<uint8_t> changed = zipOf(files);
  if (changed.size() > maxSize)
    return size;
  std::copy(changed.begin(), changed.end(), data);
  return changed.size();
}

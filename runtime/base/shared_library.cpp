// openSharedLibrary and LibraryFile: dlopen after a check that the file contains all of its
// segments.
#include "runtime/base/shared_library.h"

#include "runtime/base/checked.h"
#include "runtime/base/file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <utility>

namespace cgc {
namespace {

/// The folder that lists the open descriptors of this process.
constexpr const char *kOpenFiles = "/proc/self/fd";

/// Whether a 64-bit ELF file ends before its program headers or a loadable segment do.
bool isTruncated(std::span<const std::byte> bytes) {
  Elf64_Ehdr header{};
  std::memcpy(&header, bytes.data(), std::min(bytes.size(), sizeof(header)));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return false; // The dynamic loader reports the error.
  const auto reaches = [&](uint64_t offset, uint64_t size) {
    return rangeInside(offset, size, bytes.size());
  };
  if (bytes.size() < sizeof(header) ||
      !reaches(header.e_phoff, uint64_t(header.e_phnum) * sizeof(Elf64_Phdr)))
    return true;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
    if (segment.p_type == PT_LOAD && !reaches(segment.p_offset, segment.p_filesz))
      return true;
  }
  return false;
}

/// Maps the file of a library. InvalidFile if it is missing or truncated.
Result<MappedFile> mapLibrary(const std::string &path) {
  CGC_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  if (isTruncated(file.bytes()))
    return Status(Code::InvalidFile, "the file is cut short; copy or build it again");
  return file;
}

} // namespace

Result<void *> openSharedLibrary(const std::string &path) {
  CGC_TRY(mapLibrary(path).status());
  std::error_code ignored;
  // dlopen searches for a name without a slash in other folders.
  const std::string absolute = std::filesystem::absolute(path, ignored).string();
  void *library = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Status(Code::InvalidFile, dlerror());
  return library;
}

Result<LibraryFile> LibraryFile::open(const std::string &path) {
  // MappedFile::open gives the most precise message for a file that cannot be read.
  CGC_TRY(MappedFile::open(path).status());
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return Status(Code::InvalidFile, "cannot read '" + path + "': " + std::strerror(errno));
  LibraryFile library(fd, path);
  CGC_ASSIGN_OR_RETURN(const MappedFile file, mapLibrary(kOpenFiles + ("/" + std::to_string(fd))));
  library.hash_ = hash64(file.bytes());
  return library;
}

LibraryFile::LibraryFile(LibraryFile &&other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)), hash_(other.hash_) {}

LibraryFile::~LibraryFile() {
  if (fd_ >= 0)
    ::close(fd_);
}

Result<void *> LibraryFile::load() {
  // The dynamic loader identifies a library by every path it was opened with, even after the path
  // refers to another file, and descriptor numbers are reused. Slashes and dots in the path encode
  // the hash, so that equal paths always mean equal bytes.
  std::string name = kOpenFiles;
  for (int digit = 0; digit < 16; ++digit)
    name += std::string((hash_ >> 4 * digit & 15) + 1, '/') + ".";
  name += "/" + std::to_string(fd_);
  void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const std::string why = dlerror();
    return Status(Code::InvalidFile, why.starts_with(name) ? path_ + why.substr(name.size()) : why);
  }
  return library;
}

} // namespace cgc

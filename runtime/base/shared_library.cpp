// openSharedLibrary: dlopen, behind a check that every segment lies in the file.
#include "runtime/base/shared_library.h"

#include "runtime/base/file.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <filesystem>

namespace cgc {
namespace {

/// Whether a file that begins as an ELF file of this kind of machine ends before its segments do.
bool isCutShort(std::span<const std::byte> bytes) {
  Elf64_Ehdr header{};
  std::memcpy(&header, bytes.data(), std::min(bytes.size(), sizeof(header)));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return false; // The loader says what is wrong.
  const auto reaches = [&](uint64_t offset, uint64_t size) {
    return offset <= bytes.size() && size <= bytes.size() - offset;
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

} // namespace

Result<void *> openSharedLibrary(const std::string &path) {
  {
    CGC_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
    if (isCutShort(file.bytes()))
      return Status(Code::InvalidFile, "the file is cut short; copy or build it again");
  }
  std::error_code ignored;
  // A path without a slash would be searched for elsewhere.
  const std::string absolute = std::filesystem::absolute(path, ignored).string();
  void *library = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Status(Code::InvalidFile, dlerror());
  return library;
}

} // namespace cgc

// Files: read-only mappings, atomic replacement, and what kind of file a stranger handed us.
#pragma once

#include "runtime/base/export.h"
#include "runtime/base/status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace cgc {

/// A whole file mapped read-only. The mapping lives as long as the object.
class CGC_API MappedFile final {
public:
  /// Fails with InvalidFile if `path` is missing, not a regular file, empty or unreadable; with
  /// OutOfMemory if the process has no addresses left for it.
  static Result<MappedFile> open(const std::string &path);
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

private:
  MappedFile(const std::byte *data, size_t size) : data_(data), size_(size) {}
  const std::byte *data_ = nullptr;
  size_t size_ = 0;
};

/// Whether `path` is written to directly: a character device (/dev/null), or an open descriptor of
/// this process (/dev/stdout, /dev/fd/3, a link to one). There is no old content to keep.
bool isStream(const std::string &path);

/// Writes a file so that readers see either the old content or the whole new one: bytes go to a
/// temporary name in the same folder; commit() syncs and renames. Without commit() the destructor
/// removes the temporary file. A stream has no temporary name: it gets the bytes at once.
class AtomicFile final {
public:
  static Result<AtomicFile> create(const std::string &path);
  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&) = delete;
  ~AtomicFile();

  Status write(const void *data, size_t size);
  uint64_t position() const { return position_; }
  Status commit();

private:
  AtomicFile(int fd, std::string path, std::string tempPath)
      : fd_(fd), path_(std::move(path)), tempPath_(std::move(tempPath)) {}
  int fd_ = -1;
  uint64_t position_ = 0;
  std::string path_, tempPath_; ///< tempPath_ is empty for a stream.
};

/// Removes the temporary file of every AtomicFile that is open. Async-signal-safe: for a handler
/// that is about to end the process.
void removeOpenTemporaries() noexcept;

/// What a file seems to be, from its first bytes and, for a zip, its entry names: for messages such
/// as "this is an ONNX model". Empty if it is none of the kinds cgc knows about.
std::string describeForeignFile(const std::string &path);

/// What describeForeignFile calls the kinds that cgc itself reads.
inline constexpr const char *kTorchScriptFile = "a TorchScript module";
inline constexpr const char *kIrTextFile = "cgc IR text";
inline constexpr const char *kPlanFile = "a cgc plan";
/// And text that is no kind it knows.
inline constexpr const char *kTextFile = "a text file";

/// xxhash64 with seed 0.
uint64_t hash64(std::span<const std::byte> bytes);

} // namespace cgc

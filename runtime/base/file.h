// Files: read-only mappings, atomic replacement, recognition of foreign file formats, and hashing.
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
  /// InvalidFile if `path` is missing, empty, unreadable or not a regular file. OutOfMemory if the
  /// process has no address space left for the mapping.
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

/// Whether writes to `path` go directly to the target: a character device (/dev/null) or an open
/// descriptor of this process (/dev/stdout, /dev/fd/3, a link to one). Such a target has no old
/// content to preserve.
bool isStream(const std::string &path);

/// Writes a file so that readers see either the old content or all of the new content. Bytes go to
/// a temporary file in the same folder; commit() syncs and renames it. Without commit() the
/// destructor removes the temporary file. For a stream (isStream) there is no temporary file: bytes
/// are written directly.
class AtomicFile final {
public:
  /// Failed if the target cannot be created or is neither a regular file nor a stream, or if too
  /// many files are being written at once.
  static Result<AtomicFile> create(const std::string &path);
  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&) = delete;
  ~AtomicFile();

  /// Appends `size` bytes. Failed if the file system refuses them.
  Status write(const void *data, size_t size);
  /// Bytes written so far.
  uint64_t position() const { return position_; }
  /// Syncs the file and renames it to its final path. Called at most once; no write may follow.
  Status commit();

private:
  AtomicFile(int fd, std::string path, std::string tempPath)
      : fd_(fd), path_(std::move(path)), tempPath_(std::move(tempPath)) {}
  int fd_ = -1;
  uint64_t position_ = 0;
  std::string path_, tempPath_; ///< tempPath_ is empty for a stream.
};

/// Removes the temporary file of every open AtomicFile. Async-signal-safe, for a handler that is
/// about to end the process.
void removeOpenTemporaries() noexcept;

/// Describes the kind of a file, for messages such as "this is an ONNX model". Decides by the first
/// bytes and, for a zip archive, by its entry names. Empty if the kind is unknown to cgc.
std::string describeForeignFile(const std::string &path);

/// The descriptions that describeForeignFile gives to the kinds that cgc itself reads.
inline constexpr const char *kTorchScriptFile = "a TorchScript module";
inline constexpr const char *kExportedFile = "a .pt2 archive (torch.export)";
inline constexpr const char *kIrTextFile = "cgc IR text";
inline constexpr const char *kPlanFile = "a cgc plan";
/// The description of text of no known kind.
inline constexpr const char *kTextFile = "a text file";

/// The xxhash64 of `bytes` with seed 0.
uint64_t hash64(std::span<const std::byte> bytes);

} // namespace cgc

// Files of safetensors: named tensors behind a header in JSON, as other programs of machine
// learning write and read them.
#pragma once

#include "runtime/base/file.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cgc {

/// The largest header that is read or written, in bytes.
inline constexpr uint64_t kMaxSafetensorsHeader = 32 << 20;

/// A tensor of a file that is read. Its bytes are dense and row-major, of any alignment, and live
/// as long as the file.
struct SafetensorsTensor {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  std::span<const std::byte> bytes;
};

/// Names of a file's own notes and their texts.
using SafetensorsMetadata = std::map<std::string, std::string>;

/// A file that is mapped and whose header was verified: the tensors have the sizes that their bytes
/// need, do not overlap, and fill the file.
class SafetensorsFile final {
public:
  /// InvalidFile if the file cannot be read, is no file of safetensors, is cut short or damaged, or
  /// has a dtype that cgc does not know.
  static Result<SafetensorsFile> open(const std::string &path);
  /// The same for bytes in memory, which the caller keeps.
  static Result<SafetensorsFile> parse(std::span<const std::byte> bytes);

  /// By name.
  const std::vector<SafetensorsTensor> &tensors() const { return tensors_; }
  /// The tensor called `name`; null if there is none.
  const SafetensorsTensor *find(std::string_view name) const;
  const SafetensorsMetadata &metadata() const { return metadata_; }

private:
  SafetensorsFile() = default;
  std::optional<MappedFile> file_;
  std::vector<SafetensorsTensor> tensors_;
  SafetensorsMetadata metadata_;
};

/// A tensor of a file that is written.
struct SafetensorsEntry {
  std::string name; ///< Unique, valid UTF-8, and not "__metadata__".
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
};

/// The order of the tensors in the file, as indices: those with larger elements first, so that all
/// are aligned, then by name.
std::vector<size_t> safetensorsOrder(std::span<const SafetensorsEntry> entries);

/// The bytes in front of the tensors' bytes. Failed if the header would be too large or if a text
/// is not UTF-8.
Result<std::string> safetensorsHeader(std::span<const SafetensorsEntry> entries,
                                      const SafetensorsMetadata &metadata);

} // namespace cgc

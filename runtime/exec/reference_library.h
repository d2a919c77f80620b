// ReferenceLibrary: opens libcgc_reference, whose functions compute kernels on the host.
#pragma once

#include "runtime/base/status.h"
#include "runtime/kernels/reference.h"

#include <memory>
#include <string>

namespace cgc {

/// The opened libcgc_reference. It stays loaded until the process ends.
class ReferenceLibrary final {
public:
  /// Opens the library. Looks at `path` (the library, or the folder that contains it) or, if `path`
  /// is empty, in the paths of libraryPlaces. Device, with the paths searched, if the library is
  /// missing, damaged or of another version.
  static Result<std::unique_ptr<ReferenceLibrary>> open(const std::string &path);

  /// The reference of the kernel or library call `name`. Unsupported, with the library's path, if
  /// it has none with this ABI hash.
  Result<ReferenceFunction> find(std::string_view name, uint64_t abiHash) const;

private:
  ReferenceLibrary(std::string path, const References &references)
      : path_(std::move(path)), references_(references) {}
  std::string path_;
  const References &references_;
};

} // namespace cgc

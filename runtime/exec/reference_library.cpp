// ReferenceLibrary: finds and opens libcgc_reference, and looks up references.
#include "runtime/exec/reference_library.h"

#include "runtime/base/shared_library.h"
#include "runtime/exec/library_path.h"

#include <algorithm>
#include <dlfcn.h>
#include <span>

namespace cgc {

Result<std::unique_ptr<ReferenceLibrary>> ReferenceLibrary::open(const std::string &path) {
  const std::vector<std::filesystem::path> files = libraryPlaces(kReferenceLibrary, path);
  std::error_code error;
  const auto found = std::ranges::find_if(
      files, [&](const auto &file) { return std::filesystem::exists(file, error); });
  if (found == files.end())
    return Status(Code::Device, std::string("the reference executor needs ") + kReferenceLibrary +
                                    ", which was not found (looked for " + joinPaths(files) +
                                    "); install it there or say where it is");
  const std::string instead = "; install the one that came with this runtime";
  const Result<void *> library = openSharedLibrary(found->string());
  if (!library.isOk())
    return Status(Code::Device,
                  "cannot open '" + found->string() + "': " + library.status().message() + instead);
  const auto entry = reinterpret_cast<ReferencesEntry>(dlsym(*library, kReferenceSymbol));
  const References *references = entry ? entry(kReferenceAbi) : nullptr;
  if (!references)
    return Status(Code::Device,
                  "'" + found->string() + "' belongs to another version of cgc" + instead);
  return std::unique_ptr<ReferenceLibrary>(new ReferenceLibrary(found->string(), *references));
}

Result<ReferenceFunction> ReferenceLibrary::find(std::string_view name, uint64_t abiHash) const {
  for (const Reference &reference : std::span(references_.data, references_.size))
    if (reference.name == name && reference.abiHash == abiHash)
      return reference.run;
  return Status(Code::Unsupported,
                "'" + path_ +
                    "' has no reference of this kernel; install the library that came with this "
                    "runtime");
}

} // namespace cgc

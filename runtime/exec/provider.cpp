// Finds and opens libcgc_aten.
#include "runtime/exec/provider.h"

#include "runtime/exec/library_path.h"

#include <algorithm>
#include <dlfcn.h>

namespace cgc {
namespace {

constexpr const char *kLibrary = "libcgc_aten.so";

} // namespace

Result<std::unique_ptr<OpProvider>> loadProvider(const std::string &path) {
  const std::vector<std::filesystem::path> files = libraryPlaces(kLibrary, path);
  std::error_code error;
  const auto found = std::find_if(files.begin(), files.end(), [&](const auto &file) {
    return std::filesystem::exists(file, error);
  });
  if (found == files.end())
    return Status(
        Code::InvalidFile,
        "the plan holds ATen records, and the library that runs them was not found (looked "
        "for " +
            joinPaths(files) + "); install it there or say where it is");
  void *library = dlopen(found->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Status(Code::InvalidFile, "cannot load '" + found->string() + "': " + dlerror() +
                                         "; check that LibTorch is where it was built against");
  const auto factory = reinterpret_cast<OpProviderFactory>(dlsym(library, kOpProviderSymbol));
  std::unique_ptr<OpProvider> provider(factory ? factory(kOpProviderAbi) : nullptr);
  if (!provider)
    return Status(Code::InvalidFile, "'" + found->string() +
                                         "' belongs to another version of cgc; install the one "
                                         "that came with this runtime");
  return provider;
}

} // namespace cgc

// loadProvider: finds libcgc_aten, opens it and calls its factory.
#include "runtime/exec/provider.h"

#include "runtime/base/libtorch.h"
#include "runtime/exec/library_path.h"

#include <algorithm>
#include <dlfcn.h>

namespace cgc {
namespace {

constexpr const char *kProviderLibrary = "libcgc_aten.so";

} // namespace

Result<std::unique_ptr<OpProvider>> loadProvider(const std::string &path) {
  const std::vector<std::filesystem::path> files = libraryPlaces(kProviderLibrary, path);
  std::error_code error;
  const auto found = std::find_if(files.begin(), files.end(), [&](const auto &file) {
    return std::filesystem::exists(file, error);
  });
  if (found == files.end())
    return Status(Code::Device, std::string("LibTorch is needed, and ") + kProviderLibrary +
                                    ", through which it runs, was not found (looked for " +
                                    joinPaths(files) + "); install it there or say where it is");
  CGC_ASSIGN_OR_RETURN(void *const library, openWithLibTorch(found->string()));
  const auto factory = reinterpret_cast<OpProviderFactory>(dlsym(library, kOpProviderSymbol));
  std::unique_ptr<OpProvider> provider(factory ? factory(kOpProviderAbi) : nullptr);
  if (!provider)
    return Status(Code::Device, "'" + found->string() +
                                    "' belongs to another version of cgc; install the one that "
                                    "came with this runtime");
  return provider;
}

} // namespace cgc

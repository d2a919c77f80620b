// loadProvider: finds libcgc_aten, opens it and calls its factory.
#include "runtime/exec/provider.h"

#include "runtime/base/libtorch.h"
#include "runtime/exec/library_path.h"

#include <algorithm>
#include <dlfcn.h>
#include <filesystem>

namespace cgc {
namespace {

namespace fs = std::filesystem;

constexpr const char *kProviderLibrary = "libcgc_aten.so";

/// The library beside `file`, which is for kLibTorchVersion, that is for the present LibTorch:
/// libcgc_aten-RELEASE.so.
Result<fs::path> forPresentLibTorch(const fs::path &file) {
  const std::string release = libTorchRelease();
  if (release.empty() || std::string_view(kLibTorchVersion).starts_with(release + "."))
    return file;
  const std::string prefix = file.stem().string() + "-";
  fs::path other = file.parent_path() / (prefix + release + ".so");
  std::error_code error;
  if (fs::exists(other, error))
    return other;
  std::vector<std::string> releases;
  for (const fs::directory_entry &entry : fs::directory_iterator(file.parent_path(), error))
    if (const std::string name = entry.path().stem().string(); name.starts_with(prefix))
      releases.push_back(name.substr(prefix.size()));
  std::ranges::sort(releases);
  std::string known = std::string(kLibTorchVersion);
  for (const std::string &each : releases)
    known += ", " + each;
  return Status(Code::Device, "LibTorch is of release " + release + ", and '" +
                                  file.parent_path().string() +
                                  "' has libraries of cgc for LibTorch " + known +
                                  " alone; install one of these, or a newer cgc");
}

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
  CGC_ASSIGN_OR_RETURN(const fs::path file, forPresentLibTorch(*found));
  CGC_ASSIGN_OR_RETURN(void *const library, openWithLibTorch(file.string()));
  const auto factory = reinterpret_cast<OpProviderFactory>(dlsym(library, kOpProviderSymbol));
  std::unique_ptr<OpProvider> provider(factory ? factory(kOpProviderAbi) : nullptr);
  if (!provider)
    return Status(Code::Device, "'" + file.string() +
                                    "' belongs to another version of cgc; install the one that "
                                    "came with this runtime");
  return provider;
}

} // namespace cgc

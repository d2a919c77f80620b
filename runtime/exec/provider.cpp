// Finds and opens libcgc_aten.
#include "runtime/exec/provider.h"

#include <algorithm>
#include <dlfcn.h>
#include <filesystem>
#include <vector>

namespace cgc {
namespace {

namespace fs = std::filesystem;

constexpr const char *kLibrary = "libcgc_aten.so";

/// Where the library may lie, best first, without repetition.
std::vector<fs::path> candidates(const std::string &path) {
  std::error_code error;
  if (!path.empty())
    return {fs::is_directory(path, error) ? fs::path(path) / kLibrary : fs::path(path)};
  std::vector<fs::path> folders;
  Dl_info info;
  if (dladdr(reinterpret_cast<const void *>(&loadProvider), &info) && info.dli_fname)
    folders.push_back(fs::weakly_canonical(info.dli_fname, error).parent_path());
  folders.push_back(fs::read_symlink("/proc/self/exe", error).parent_path());
  std::vector<fs::path> files;
  for (const fs::path &folder : folders)
    for (const fs::path &place : {folder, folder.parent_path() / "lib"})
      if (const fs::path file = place / kLibrary;
          std::find(files.begin(), files.end(), file) == files.end())
        files.push_back(file);
  return files;
}

} // namespace

Result<std::unique_ptr<OpProvider>> loadProvider(const std::string &path) {
  const std::vector<fs::path> files = candidates(path);
  std::error_code error;
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const fs::path &file) { return fs::exists(file, error); });
  if (found == files.end()) {
    std::string places;
    for (const fs::path &file : files)
      places += (places.empty() ? "" : ", ") + file.string();
    return Status(
        Code::InvalidFile,
        "the plan holds ATen records, and the library that runs them was not found (looked "
        "for " +
            places + "); install it there or say where it is");
  }
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

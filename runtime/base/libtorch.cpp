// LibTorch at run time: loads it from CGC_LIBTORCH or through the dynamic loader.
#include "runtime/base/libtorch.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <link.h>
#include <regex>

namespace cgc {
namespace {

namespace fs = std::filesystem;

/// The LibTorch libraries that cgc's libraries link. Each comes after its own dependencies.
constexpr const char *kLinked[] = {"libc10.so", "libtorch_cpu.so"};

/// Loads LibTorch from the folder that the user named. The dynamic loader then resolves cgc's
/// dependencies to these libraries by their names.
Status loadFrom(const fs::path &folder) {
  std::error_code ignored;
  const fs::path lib = fs::exists(folder / kLinked[0], ignored) ? folder : folder / "lib";
  for (const char *name : kLinked)
    if (!dlopen((lib / name).c_str(), RTLD_NOW | RTLD_LOCAL))
      return {Code::Device, std::string(kLibTorchVariable) + " is '" + folder.string() + "', and " +
                                dlerror() + "; set it to the folder of LibTorch " +
                                kLibTorchVersion + " that has lib/" + name};
  return Status::ok();
}

} // namespace

Result<void *> openWithLibTorch(const std::string &path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    return Status(Code::Device, "'" + path + "' is missing; install it with the rest of cgc");
  const char *folder = std::getenv(kLibTorchVariable);
  const bool loaded = dlopen(kLinked[0], RTLD_LAZY | RTLD_NOLOAD) != nullptr;
  if (folder && *folder && !loaded)
    CGC_TRY(loadFrom(folder));
  if (void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
    return library;
  return Status(Code::Device,
                "cannot load '" + path + "': " + dlerror() + "; it needs LibTorch " +
                    kLibTorchVersion + ", which is looked for in " +
                    fs::path(path).parent_path().string() +
                    ", then in LD_LIBRARY_PATH: put LibTorch's lib folder into LD_LIBRARY_PATH, or "
                    "set " +
                    kLibTorchVariable + " to LibTorch's folder");
}

std::string loadedPath(const char *name) {
  void *const library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  link_map *map = nullptr;
  if (!library || dlinfo(library, RTLD_DI_LINKMAP, static_cast<void *>(&map)) != 0)
    return "";
  std::string path = map->l_name;
  (void)dlclose(library); // Undoes the count of dlopen.
  return path;
}

std::string libTorchRelease() {
  fs::path folder = fs::path(loadedPath(kLinked[0])).parent_path();
  const char *const named = std::getenv(kLibTorchVariable);
  if (folder.empty() && named)
    folder = named;
  if (folder.empty())
    return "";
  static const std::regex kVersion(R"re((?:^|__version__ = ')(\d{1,4}\.\d{1,4})\..*)re");
  for (const fs::path &place : {folder, folder / ".."})
    for (const char *name : {"version.py", "build-version"}) {
      std::ifstream file(place / name);
      std::string line;
      for (std::smatch found; std::getline(file, line);)
        if (std::regex_match(line, found, kVersion))
          return found[1];
    }
  return "";
}

Result<void *> openLibTorchCuda(const void *address) {
  constexpr const char *kName = "libtorch_cuda.so";
  Dl_info info = {};
  fs::path path = kName;
  if (dladdr(address, &info) && info.dli_fname)
    path = fs::path(info.dli_fname).parent_path() / kName;
  std::string why;
  for (const fs::path &place : {path, fs::path(kName)}) {
    if (void *library = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL))
      return library;
    if (why.empty())
      why = dlerror();
  }
  return Status(Code::Device, "cannot open LibTorch's CUDA library (" + why +
                                  "): install a CUDA build of LibTorch " + kLibTorchVersion);
}

} // namespace cgc

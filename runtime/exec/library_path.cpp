// Candidate paths of the libraries that the runtime opens.
#include "runtime/exec/library_path.h"

#include <algorithm>
#include <dlfcn.h>

namespace cgc {

namespace fs = std::filesystem;

std::vector<fs::path> libraryPlaces(const std::string &library, const std::string &path) {
  std::error_code error;
  if (!path.empty())
    return {fs::is_directory(path, error) ? fs::path(path) / library : fs::path(path)};
  std::vector<fs::path> folders;
  Dl_info info;
  if (dladdr(reinterpret_cast<const void *>(&libraryPlaces), &info) && info.dli_fname)
    folders.push_back(fs::weakly_canonical(info.dli_fname, error).parent_path());
  folders.push_back(fs::read_symlink("/proc/self/exe", error).parent_path());
  std::vector<fs::path> files;
  for (const fs::path &folder : folders)
    for (const fs::path &place : {folder, folder.parent_path() / "lib"})
      if (const fs::path file = place / library;
          std::find(files.begin(), files.end(), file) == files.end())
        files.push_back(file);
  return files;
}

Result<void *> openLibrary(const std::string &library, const std::string &path) {
  const std::vector<fs::path> places = libraryPlaces(library, path);
  std::string why;
  const auto open = [&](const std::string &place) {
    void *const opened = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!opened && why.empty())
      why = dlerror();
    return opened;
  };
  if (path.empty())
    if (void *const opened = open(library)) // The dynamic loader searches for a bare name.
      return opened;
  for (const fs::path &place : places)
    if (void *const opened = open(place))
      return opened;
  return Status(Code::Device, library + " cannot be opened (looked " +
                                  (path.empty() ? "where the loader does, and " : "") + "for " +
                                  joinPaths(places) + ": " + why + ")");
}

std::string joinPaths(const std::vector<fs::path> &paths) {
  std::string text;
  for (const fs::path &path : paths)
    text += (text.empty() ? "" : ", ") + path.string();
  return text;
}

} // namespace cgc

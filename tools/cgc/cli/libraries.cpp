// Libraries: finds, opens and checks the shared libraries.
#include "tools/cgc/cli/libraries.h"

#include "runtime/base/libtorch.h"
#include "runtime/base/shared_library.h"
#include "runtime/kernels/reference.h"
#include "tools/cgc/cli/console.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <dlfcn.h>
#include <filesystem>

namespace cgc::tool {

namespace fs = std::filesystem;

std::string libraryPath(const std::string &name) {
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path installed = folder.parent_path() / "lib" / name;
  return (fs::exists(installed, ignored) ? installed : folder / name).string();
}

std::string libraryFolder() {
  return fs::path(libraryPath(kReferenceLibrary)).parent_path().string();
}

std::string providerPath() {
  return libraryPath("libcgc_aten.so");
}

void addOpLibraryOption(CLI::App &command, std::vector<std::string> &paths) {
  command
      .add_option(kOpLibraryOption, paths,
                  "A library with ops of a plug-in; once for each (it is code: cgc runs it)")
      ->type_name("LIB.so")
      ->allow_extra_args(false);
}

Result<std::vector<std::shared_ptr<const OpLibrary>>>
openOpLibraries(const std::vector<std::string> &paths) {
  std::vector<std::shared_ptr<const OpLibrary>> libraries;
  for (const std::string &path : paths) {
    CGC_ASSIGN_OR_RETURN(auto library, OpLibrary::open(path));
    for (const auto &other : libraries)
      if (other->id().name == library->id().name)
        return Status(Code::Usage,
                      fmt::format("{} names two files called '{}', '{}' and '{}': a plan could not "
                                  "tell them apart",
                                  kOpLibraryOption, library->id().name, other->path(), path));
    libraries.push_back(std::move(library));
  }
  return libraries;
}

void noteUnusedOpLibraries(const PlanData &plan, const std::vector<std::string> &paths) {
  for (const std::string &path : paths) {
    // Compares by content, as the engine does. A library that the plan does not need may be absent.
    const auto file = LibraryFile::open(path);
    if (file && std::ranges::count(plan.opLibraries, file->hash(), &OpLibraryId::hash) > 0)
      continue;
    const std::string name = fs::path(path).filename().string();
    const bool isOtherBuild = std::ranges::count(plan.opLibraries, name, &OpLibraryId::name) > 0;
    logInfo(fmt::format("{} {} is not used: the plan {}", kOpLibraryOption, path,
                        isOtherBuild
                            ? "was compiled with another build of it; compile the model again"
                            : "calls no op of it"));
  }
}

Result<const frontend::Api *> openFrontend() {
  const std::string path = libraryPath("libcgc_frontend.so");
  const auto opened = openWithLibTorch(path);
  if (!opened)
    return opened.status().withContext("cannot open the TorchScript frontend");
  void *const library = *opened;
  auto *entry = reinterpret_cast<frontend::ApiEntry *>(dlsym(library, frontend::kApiEntryName));
  if (!entry)
    return Status(Code::Failed, fmt::format("'{}' is not the frontend of this cgc", path));
  const frontend::Api *api = entry(frontend::kFrontendAbi);
  if (!api)
    return Status(
        Code::Failed,
        fmt::format("'{}' is of another version of cgc; build or install both together", path));
  return api;
}

} // namespace cgc::tool

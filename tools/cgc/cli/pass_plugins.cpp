// Pass plug-ins: opens, checks and calls them.
#include "tools/cgc/cli/pass_plugins.h"

#include "passes/plugin.h"
#include "runtime/base/file.h"
#include "runtime/base/shared_library.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <dlfcn.h>
#include <filesystem>

namespace cgc::tool {

namespace {

Status loadPassPlugin(const std::string &path, const std::string &absolute,
                      passes::PipelineBuilder &builder) {
  const auto opened = openSharedLibrary(absolute);
  if (!opened)
    return Status(Code::InvalidFile, fmt::format("cannot load pass plug-in '{}': {}; a plug-in is "
                                                 "built against the cgc that loads it",
                                                 path, opened.status().message()));
  void *const library = *opened;
  const auto entry =
      reinterpret_cast<decltype(&cgcPassPlugin)>(dlsym(library, passes::kPassPluginSymbol));
  if (!entry)
    return Status(Code::InvalidFile,
                  fmt::format("'{}' is no pass plug-in: it does not define {}{}", path,
                              passes::kPassPluginSymbol,
                              dlsym(library, "cgcOpLibrary")
                                  ? "; it is an op library: name it with --op-library"
                                  : " (passes/plugin.h)"));
  std::string who = fmt::format("pass plug-in '{}'", path);
  try {
    const passes::PassPlugin *plugin = entry();
    if (!plugin || plugin->abi != passes::kPassPluginAbi)
      return Status(Code::Failed,
                    fmt::format("{} has ABI {}, and this cgc takes ABI {}; build it "
                                "against this cgc",
                                who, plugin ? plugin->abi : 0, passes::kPassPluginAbi));
    if (plugin->build != passes::kPassPluginBuild)
      return Status(Code::Failed,
                    who + " was built against a cgc with other headers or another LLVM; "
                          "build it against this cgc");
    if (!plugin->name || !plugin->registerIn)
      return Status(Code::Failed, who + " has no name or no function that registers");
    who = fmt::format("pass plug-in '{}' ('{}')", plugin->name, path);
    plugin->registerIn(builder);
    return Status::ok();
  } catch (const std::exception &error) {
    return Status(Code::Failed, fmt::format("{} threw an exception: {}", who, error.what()));
  } catch (...) {
    return Status(Code::Failed, who + " threw an exception that is no std::exception");
  }
}

} // namespace

void addPassPluginOption(CLI::App &command, std::vector<std::string> &paths) {
  command
      .add_option("--pass-plugin", paths,
                  "A library that adds passes and substitutions; once for each (it is code: cgc "
                  "runs it)")
      ->type_name("LIB.so")
      ->allow_extra_args(false);
}

Result<std::vector<passes::UsedPlugin>> loadPassPlugins(const std::vector<std::string> &paths,
                                                        passes::PipelineBuilder &builder) {
  std::vector<passes::UsedPlugin> used;
  for (const std::string &path : paths) {
    CGC_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
    std::error_code ignored;
    // dlopen searches the library path for a name without a slash.
    const std::string absolute = std::filesystem::absolute(path, ignored).string();
    CGC_TRY(loadPassPlugin(path, absolute, builder));
    used.push_back({absolute, hash64(file.bytes())});
  }
  return used;
}

} // namespace cgc::tool

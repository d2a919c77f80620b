// Libraries: opens, on demand, the shared libraries of cgc that link LibTorch, and op libraries.
#pragma once

#include "frontend/frontend.h"
#include "runtime/base/status.h"
#include "runtime/plan/op_library.h"

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cgc::tool {

/// The path of a library of this installation: in ../lib beside the program's folder, else in the
/// program's folder.
std::string libraryPath(const std::string &name);
/// The folder of libcgc_reference and libcgc_aten, which compute constants during compilation.
std::string libraryFolder();

/// Opens the frontend once. It stays open until the process ends. Device if the frontend or
/// LibTorch is missing.
Result<const frontend::Api *> openFrontend();

/// The path of the provider of ATen records, for the runtime.
std::string providerPath();

/// Adds --op-library; `paths` must outlive `command`.
void addOpLibraryOption(CLI::App &command, std::vector<std::string> &paths);
/// Opens the op libraries. Usage if two have the same name, because a plan could not tell them
/// apart.
Result<std::vector<std::shared_ptr<const OpLibrary>>>
openOpLibraries(const std::vector<std::string> &paths);
/// Logs each op library in `paths` of which `plan` calls no op.
void noteUnusedOpLibraries(const PlanData &plan, const std::vector<std::string> &paths);

} // namespace cgc::tool

// Libraries: the parts of cgc that link LibTorch and are opened only when a verb needs them.
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

/// Where a library of this installation lies: in ../lib beside the program's folder, else in that
/// folder.
std::string libraryPath(const std::string &name);

/// Opens the frontend, once; it stays open until the process ends. Device if it or LibTorch is
/// missing.
Result<const frontend::Api *> openFrontend();

/// Where the runtime finds the provider of ATen records.
std::string providerPath();

/// Adds --op-library; `paths` must outlive `command`.
void addOpLibraryOption(CLI::App &command, std::vector<std::string> &paths);
/// Opens all of them. Usage if two have one name: a plan could not tell them apart.
Result<std::vector<std::shared_ptr<const OpLibrary>>>
openOpLibraries(const std::vector<std::string> &paths);
/// Logs each of `paths` that `plan` calls no op of.
void noteUnusedOpLibraries(const PlanData &plan, const std::vector<std::string> &paths);

} // namespace cgc::tool

// Libraries: the parts of cgc that link LibTorch and are opened only when a verb needs them.
#pragma once

#include "frontend/frontend.h"
#include "runtime/base/status.h"

#include <string>

namespace cgc::tool {

/// Where a library of this installation lies: in ../lib beside the program's folder, else in that
/// folder.
std::string libraryPath(const std::string &name);

/// Opens the frontend, once; it stays open until the process ends. Failed if it or LibTorch is
/// missing.
Result<const frontend::Api *> openFrontend();

/// Where the runtime finds the provider of ATen records.
std::string providerPath();

} // namespace cgc::tool

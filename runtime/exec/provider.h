// Opens the library that runs ATen records.
#pragma once

#include "runtime/base/status.h"
#include "runtime/plan/op_provider.h"

#include <memory>
#include <string>

namespace cgc {

/// The provider of libcgc_aten: at `path` (the library, or a folder that holds it), or, if empty,
/// beside this code and beside the program, each also in ../lib. The library stays loaded until the
/// process ends, for LibTorch cannot be unloaded. Device, with the places, if it or LibTorch is
/// missing or of another version.
Result<std::unique_ptr<OpProvider>> loadProvider(const std::string &path);

} // namespace cgc

// loadProvider: opens the library that runs ATen records.
#pragma once

#include "runtime/base/status.h"
#include "runtime/plan/op_provider.h"

#include <memory>
#include <string>

namespace cgc {

/// Opens libcgc_aten and returns its provider. Looks at `path` (the library, or the folder that
/// contains it) or, if `path` is empty, in the folder of this code and the folder of the program,
/// each followed by its ../lib. For a LibTorch of another release than cgc was built with, such as
/// 2.15, it opens libcgc_aten-2.15.so beside it. The library stays loaded until the process ends,
/// because LibTorch cannot be unloaded. Device, with the paths searched, if libcgc_aten or LibTorch
/// is missing or of another version.
Result<std::unique_ptr<OpProvider>> loadProvider(const std::string &path);

} // namespace cgc

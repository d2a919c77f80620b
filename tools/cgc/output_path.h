// checkOutputPath: says before the long work what would stop the writing after it.
#pragma once

#include "runtime/base/status.h"

#include <span>
#include <string>
#include <string_view>

namespace cgc::tool {

/// `option`'s file must not be one of `others` (what is read, and what else is written; links
/// count, empty strings do not), nor standard output: Usage. Failed if it cannot be created. Leaves
/// nothing behind.
Status checkOutputPath(std::string_view option, const std::string &path,
                       std::span<const std::string> others);

} // namespace cgc::tool

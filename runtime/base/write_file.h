// writeFile: writes a text to a file.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <string_view>

namespace cgc {

/// Writes `text` to `path` atomically: readers see either the old content or the new one. Failed as
/// AtomicFile says.
Status writeFile(const std::string &path, std::string_view text);

} // namespace cgc

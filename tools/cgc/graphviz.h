// Graphviz: DOT text to an SVG file with the program `dot`.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <string_view>

namespace cgc::tool {

/// Writes `text` to `path`, atomically.
Status writeFile(const std::string &path, std::string_view text);

/// `dotText` as Graphviz draws it: an SVG file. Failed if `dot` is not installed or refuses.
Result<std::string> drawSvg(const std::string &dotText);

} // namespace cgc::tool

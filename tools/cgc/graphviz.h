// Graphviz: DOT text to an SVG file with the program `dot`.
#pragma once

#include "runtime/base/status.h"

#include <string>
#include <string_view>

namespace cgc::tool {

/// Writes `text` to `path`, atomically.
Status writeFile(const std::string &path, std::string_view text);

/// Draws `dotText` with Graphviz and writes the picture to `path`, atomically. Failed if `dot` is
/// not installed or refuses.
Status writeSvg(const std::string &path, const std::string &dotText);

} // namespace cgc::tool

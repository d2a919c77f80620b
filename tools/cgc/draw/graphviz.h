// Graphviz: DOT text to an SVG file with the program `dot`.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace cgc::tool {

/// `dotText` as Graphviz draws it: an SVG file. Failed if `dot` is not installed or refuses.
Result<std::string> drawSvg(const std::string &dotText);

} // namespace cgc::tool

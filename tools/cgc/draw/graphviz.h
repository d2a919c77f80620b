// Graphviz: converts DOT text to SVG with the program `dot`.
#pragma once

#include "runtime/base/status.h"

#include <string>

namespace cgc::tool {

/// The SVG file that Graphviz draws of `dotText`. Failed if `dot` is not installed or rejects the
/// text.
Result<std::string> drawSvg(const std::string &dotText);

} // namespace cgc::tool

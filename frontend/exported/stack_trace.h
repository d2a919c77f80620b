// userLine: the line of the user's source in a Python stack.
#pragma once

#include "ir/graph.h"

#include <optional>
#include <string_view>

namespace cgc::exported {

/// Returns the innermost frame of `trace` outside of torch's own files. None if there is none.
std::optional<ir::Loc> userLine(std::string_view trace);

} // namespace cgc::exported

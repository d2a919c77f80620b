// Offender report: the diagnostics about a model as JSON.
#pragma once

#include "ir/diagnostics.h"

#include <nlohmann/json_fwd.hpp>

namespace cgc::tool {

/// A list with one object for each error: its location, its cause, and how to fix it (docs/cli.md).
nlohmann::ordered_json offendersJson(const ir::Diagnostics &diagnostics);

} // namespace cgc::tool

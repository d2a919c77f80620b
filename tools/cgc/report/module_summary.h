// Module summary: the report of inspect about a TorchScript file or IR text.
#pragma once

#include "ir/module.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace cgc::tool {

/// The fields of the JSON kinds "torchscript" and "ir" (docs/cli.md).
nlohmann::ordered_json moduleJson(const ir::Module &root, const std::string &path);
/// The same facts as human-readable text.
std::string moduleText(const ir::Module &root, const std::string &path);

} // namespace cgc::tool

// Capturability: finds what in a model cannot be captured in a CUDA graph, without compiling it.
#pragma once

#include "ir/diagnostics.h"
#include "ir/module.h"
#include "tools/cgc/cli/specs.h"

#include <nlohmann/json_fwd.hpp>

namespace cgc::tool {

struct Capturability {
  struct Method {
    std::string name;
    bool capturable = true;
  };
  std::vector<Method> methods;
  ir::Diagnostics offenders; ///< The offenders of all methods, without duplicates.
  bool hasShapes = false;    ///< Whether shape-dependent offenders were checked.
};

/// Analyzes the methods of `root` that `inputs` and `entries` choose, as for compile. Without
/// inputs, analyzes `entries`, or all methods if there are none, and checks only what does not
/// depend on shapes. Changes `root`; do not use it afterwards.
Result<Capturability> analyzeCapturability(ir::Module &root, const std::vector<InputSpec> &inputs,
                                           const std::vector<std::string> &entries);

std::string capturabilityText(const Capturability &result);
nlohmann::ordered_json capturabilityJson(const Capturability &result, const std::string &path);

} // namespace cgc::tool

// Capturability: what in a model cannot be captured into a CUDA graph, found without compiling it.
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
  ir::Diagnostics offenders; ///< Of all methods, each once.
  bool hasShapes = false;    ///< Whether what depends on shapes was judged.
};

/// Judges the methods of `root` that `inputs` and `entries` choose as those of compile do, or
/// without inputs all (or `entries`), as far as no shape matters. `root` is of no use afterwards.
Result<Capturability> analyzeCapturability(ir::Module &root, const std::vector<InputSpec> &inputs,
                                           const std::vector<std::string> &entries);

std::string capturabilityText(const Capturability &result);
nlohmann::ordered_json capturabilityJson(const Capturability &result, const std::string &path);

} // namespace cgc::tool

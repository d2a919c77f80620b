// Optimizer options: reads them from options of the pass `optimize`, and writes them as such.
#pragma once

#include "ir/type.h"
#include "passes/manager/pass_options.h"
#include "runtime/base/optimizer_options.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>
#include <string>
#include <vector>

namespace cgc::passes {

/// Whether `group` has the parameter `path` of this type. Its globs are those of path_glob.h.
bool contains(const ParameterGroup &group, llvm::StringRef path, const ir::TensorType &type);

/// "option 'lr' of optimize".
std::string spellingOfPass(llvm::StringRef option);

/// Reads the options of the pass `optimize`. Those that are not given are as in `base`, or as in
/// PyTorch. Usage if a value is wrong; the message calls the option what `spelling` returns for its
/// name.
Result<OptimizerOptions>
takeOptimizer(PassOptions &options,
              llvm::function_ref<std::string(llvm::StringRef)> spelling = spellingOfPass,
              std::optional<OptimizerOptions> base = std::nullopt);
/// The inverse of takeOptimizer() without a base.
std::vector<PassOption> toOptions(const OptimizerOptions &optimizer);

} // namespace cgc::passes

// Optimizer flags: the command-line options that describe the optimizer of a training step.
#pragma once

#include "passes/train/optimizer_options.h"

#include <string>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace cgc::tool {

/// The values of --optimizer, --groups, --schedule, --clamp, --clip-norm, --clip-value and --ema.
struct OptimizerFlags {
  std::string optimizer, groups, schedule, clamps; ///< Empty: not given.
  double clipNorm = 0, clipValue = 0, ema = 0;
};

/// Adds the options, which need `with`; returns that of --optimizer. `flags` must outlive
/// `command`.
CLI::Option *addOptimizerOptions(CLI::App &command, OptimizerFlags &flags, CLI::Option *with);

/// The optimizer of the flags, SGD if none is given. Usage, in the words of the command line, if a
/// value is wrong.
Result<passes::OptimizerOptions> parseOptimizer(const OptimizerFlags &flags);

/// The flags as on the command line, with the learning rate: `--optimizer sgd,lr=0.001`.
std::string commandText(const OptimizerFlags &flags, const passes::OptimizerOptions &optimizer);

} // namespace cgc::tool

// Optimizer flags: the command-line options that describe the optimizer of a training step.
#pragma once

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

#include <optional>
#include <string>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace cgc::tool {

/// The values of --optimizer, --groups, --schedule, --clamp, --clip-norm, --clip-value and --ema.
struct OptimizerFlags {
  std::string optimizer, groups, schedule, clamps; ///< Empty: not given.
  std::optional<double> clipNorm, clipValue, ema;
};

/// Adds the options, which need `with`. `flags` must outlive `command`.
void addOptimizerOptions(CLI::App &command, OptimizerFlags &flags, CLI::Option *with);

/// The optimizer of the flags. What they do not say is as in `base`, or as in PyTorch's SGD. Usage,
/// in the words of the command line, if a value is wrong.
Result<OptimizerOptions> parseOptimizer(const OptimizerFlags &flags,
                                        std::optional<OptimizerOptions> base = std::nullopt);

/// What the command line calls the first option in which two optimizers differ; empty without one.
std::string findDifference(const OptimizerOptions &a, const OptimizerOptions &b);

/// The step in options of `cgc compile`: `--train forward --optimizer sgd,lr=0.001`.
std::string commandText(const TrainingStep &step);

} // namespace cgc::tool

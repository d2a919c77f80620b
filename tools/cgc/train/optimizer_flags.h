// Optimizer flags: the command-line options that describe the optimizer of a training step.
#pragma once

#include <string>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace cgc::tool {

/// The values of --optimizer, --groups, --schedule, --clamp, --clip-norm and --clip-value.
struct OptimizerFlags {
  std::string optimizer = "sgd", groups, schedule, clamps;
  double clipNorm = 0, clipValue = 0;
};

/// Adds the options, which need `with`; returns that of --optimizer. `flags` must outlive
/// `command`.
CLI::Option *addOptimizerOptions(CLI::App &command, OptimizerFlags &flags, CLI::Option *with);

/// The options of the pass `optimize`. `--optimizer adamw,lr=0.1` becomes `rule=adamw,lr=0.1`, and
/// `--schedule cosine,steps=9` becomes `schedule=cosine,steps=9`.
std::string optimizerText(const OptimizerFlags &flags);

} // namespace cgc::tool

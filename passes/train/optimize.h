// optimize: adds the update of an optimizer to a graph with gradients.
#pragma once

#include "passes/pass.h"
#include "passes/train/optimizer_options.h"

namespace cgc::passes {

/// Takes the outputs `gradient.<path>` that `differentiate` added and updates their states. Moments
/// become states of role `optimizer` beside their parameter, `<path>:exp_avg` for example. Clipping
/// by norm adds the output `gradient_norm`. One cgc.sgd or cgc.adam updates all parameters of a
/// group. Where the graph casts a parameter to 16 bits, it reads a state of role `copy` instead,
/// `<path>:bf16`, which a second call for the group writes beside the parameter; a parameter with a
/// clamp keeps its cast. Averages are states `<path>:ema` that start as their parameter, moved by
/// one cgc.ema after updates and clamps. Usage if there are no gradients, or if a clamp names no
/// parameter with a gradient.
struct OptimizePass {
  static constexpr const char *name = "optimize";
  static constexpr bool isRequired = true;
  /// Options: those of takeOptimizer().
  static Result<OptimizePass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  OptimizerOptions options;
};

} // namespace cgc::passes

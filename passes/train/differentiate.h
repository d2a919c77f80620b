// differentiate: adds the backward pass of a loss to a graph.
#pragma once

#include "passes/pass.h"

namespace cgc::passes {

/// Adds the gradients of output `loss`, a floating scalar, with respect to the states of role
/// `parameter` that it depends on, as outputs named `gradient.<path>` in the order in which the
/// graph reads the states first. The loss becomes the first output. A state without such an output
/// has no path to the loss.
/// With a loss scale, these are the gradients of the loss times the state kLossScaleState.
/// Unsupported, with each op in the diagnostics, if an op between a state and the loss has no
/// gradient.
struct DifferentiatePass {
  static constexpr const char *name = "differentiate";
  static constexpr bool isRequired = true;
  /// Options: loss, the index of the output (default 0); loss-scale, the first loss scale (default
  /// none).
  static Result<DifferentiatePass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  size_t loss = 0;
  std::optional<uint64_t> lossScale = {};
};

/// The names of the outputs of a method that is trained, made up where the model gives none: `loss`
/// for a single output, else `output0`, `output1` and so on.
std::vector<std::string> trainingOutputNames(const ir::Graph &graph);
/// The name of the output that is the gradient of the state `path`.
std::string gradientName(llvm::StringRef path);
/// The path of the state whose gradient the output called `name` is; empty if it is none.
llvm::StringRef gradientPath(llvm::StringRef name);

} // namespace cgc::passes

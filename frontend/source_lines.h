// Source lines: the location of a TorchScript node in the user's source.
#pragma once

#include "ir/graph.h"

#include <torch/csrc/jit/ir/ir.h>

#include <string>
#include <vector>

namespace cgc::frontend {

/// Returns the frames of `node`, innermost first: one line for scripted code, the Python stack up
/// to the tracer for traced code. Empty for nodes created by tracing.
std::vector<ir::Loc> framesOf(const torch::jit::Node &node);

} // namespace cgc::frontend

// Source lines: where in the user's source a TorchScript node comes from.
#pragma once

#include "ir/graph.h"

#include <torch/csrc/jit/ir/ir.h>

#include <string>
#include <vector>

namespace cgc::frontend {

/// Whether `file` is no file of the user's: torch's own, the source of its builtins ("<string>"),
/// or what saving generated.
bool isTorchs(llvm::StringRef file);

/// Where `node` comes from, innermost first: one line for scripted code, the Python stack up to the
/// tracer for traced code. Empty for nodes that tracing made up.
std::vector<ir::Loc> framesOf(const torch::jit::Node &node);

} // namespace cgc::frontend

// Activations that the epilogue of a GEMM computes, for the passes that fuse them.
#pragma once

#include "ir/graph.h"

namespace cgc::passes {

/// Returns the name of the activation, of cgc.linear and cgc.conv2d, that `node` computes of its
/// 'self'; null if it is none.
const char *activationOf(const ir::Node &node);

} // namespace cgc::passes

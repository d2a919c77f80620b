// RandomStates: the states that random ops are a function of.
#pragma once

#include "ir/module.h"

namespace cgc::passes {

/// kSeedState and kOffsetState of the root module.
struct RandomStates {
  ir::Value *seed, *offset;
};

/// Reads both states, on `device`, before `before`. Adds them to the owner of the graph, the root
/// module, if it does not have them yet.
RandomStates readRandomStates(ir::Graph &graph, DeviceKind device, ir::Node &before);

/// Makes each run of the graph advance the offset by one, unless it does so already. The graph has
/// an output node.
void advanceRandomOffset(ir::Graph &graph, DeviceKind device);

/// The first stream of random numbers that no call of the graph draws from.
int64_t firstFreeStream(const ir::Graph &graph);

} // namespace cgc::passes

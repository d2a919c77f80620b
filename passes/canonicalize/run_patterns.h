// runPatterns: a list of patterns on one graph until nothing changes.
#pragma once

#include "passes/canonicalize/patterns.h"
#include "passes/pass.h"

#include <cstdint>

namespace cgc::passes {

/// Usage, naming the pass to run first, if `graph` has a call of a submodule.
Status requireInlined(const ir::Graph &graph);

/// Usage, naming the pass to run first, if a value of `graph` has no tensor type.
Status requireTypes(const ir::Graph &graph);

/// Usage, naming the pass to run first, if `graph` has ops with an effect, in place or otherwise,
/// or calls that may have one: what a value is depends on where it is read then. For each pass that
/// moves, merges or evaluates nodes.
Status requireFunctional(const ir::Graph &graph);

inline constexpr uint64_t kNoLimit = UINT64_MAX;

/// Offers each node in use to each pattern, in order, until none rewrites anything, or
/// `maxRewrites` of them have; what becomes unused is swept. Usage without requireTypes and
/// requireFunctional; Failed if the patterns do not settle.
Result<Changed> runPatterns(ir::Graph &graph, llvm::ArrayRef<Pattern> patterns,
                            PassContext &context, uint64_t maxRewrites = kNoLimit);

} // namespace cgc::passes

// runPatterns: applies a list of patterns to one graph until nothing changes.
#pragma once

#include "passes/canonicalize/patterns.h"
#include "passes/pass.h"

#include <cstdint>

namespace cgc::passes {

/// Returns Usage, naming the pass to run first, if `graph` calls a submodule.
Status requireInlined(const ir::Graph &graph);

/// Returns Usage, naming the pass to run first, if a value of `graph` has no tensor type.
Status requireTypes(const ir::Graph &graph);

/// Returns Usage, naming the pass to run first, if `graph` has in-place ops, other ops with a side
/// effect, or calls that may have one: a value would then depend on where it is read. Every pass
/// that moves, merges or evaluates nodes must check this.
Status requireFunctional(const ir::Graph &graph);

inline constexpr uint64_t kNoLimit = UINT64_MAX;

/// Offers each node in use to each pattern, in order, until none rewrites anything or `maxRewrites`
/// rewrites were made. Erases dead nodes. Then reports the candidates that do not match, if the
/// context asks for them and rewrites are left. Usage if requireTypes or requireFunctional fails;
/// Failed if the patterns reach no fixed point.
Result<Changed> runPatterns(ir::Graph &graph, llvm::ArrayRef<Pattern> patterns,
                            PassContext &context, uint64_t maxRewrites = kNoLimit);

} // namespace cgc::passes

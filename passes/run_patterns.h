// runPatterns: applies a list of patterns to one graph until nothing changes.
#pragma once

#include "passes/pass.h"
#include "passes/pattern.h"

#include <cstdint>

namespace cgc::passes {

inline constexpr uint64_t kNoLimit = UINT64_MAX;

/// Offers each node in use to each pattern, in order, until none rewrites anything or `maxRewrites`
/// rewrites were made. Erases dead nodes. Then reports the candidates that do not match, if the
/// context asks for them and rewrites are left. Usage if requireTypes or requireFunctional fails;
/// Failed if the patterns reach no fixed point.
Result<Changed> runPatterns(ir::Graph &graph, llvm::ArrayRef<Pattern> patterns,
                            PassContext &context, uint64_t maxRewrites = kNoLimit);

} // namespace cgc::passes

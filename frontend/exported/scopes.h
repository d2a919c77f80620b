// Scope: a call of a module, found by the stacks that the nodes of a program recorded.
#pragma once

#include "frontend/exported/program.h"

#include <string>
#include <vector>

namespace cgc::exported {

/// The nodes from `begin` to `end` without `end`. Those of `children` ran in modules below, in
/// order.
struct Scope {
  std::string key, path, className;
  size_t begin = 0, end = 0;
  std::vector<Scope> children;
};

/// Returns the scope of the whole program. A stack with a module that is not below the one before
/// it, as a module that two others share, counts up to there.
Scope findScopes(const std::vector<Node> &nodes);

} // namespace cgc::exported

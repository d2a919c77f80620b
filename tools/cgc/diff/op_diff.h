// Op diff: which ops of two lists correspond, and what became of the others. Names of values and
// positions do not matter: ops correspond by what they do and where in the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cgc::tool {

/// One op of a graph, or one record of a bucket.
struct DiffOp {
  std::string op = {};   ///< "aten.linear"
  std::string path = {}; ///< Of the module.
  std::string what = {}; ///< All that makes it what it is but its operands: constants, types.
  /// Where its operands come from: earlier ops of the list, each with the number of its result.
  std::vector<std::pair<size_t, uint32_t>> operands = {};
  std::string text = {}; ///< For people.
};

struct OpDifference {
  enum Kind { Removed, Added, Changed } kind;
  size_t before = 0, after = 0; ///< Positions; what a list has not is 0.
};

struct OpDiff {
  std::vector<OpDifference> differences; ///< In the order of the lists.
  size_t equal = 0;
};

OpDiff diffOps(const std::vector<DiffOp> &before, const std::vector<DiffOp> &after);

} // namespace cgc::tool

// Op diff: finds the ops of two lists that correspond, by what they compute and where in the model
// they are; names of values and positions do not matter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cgc::tool {

/// One op of a graph, or one record of a bucket.
struct DiffOp {
  std::string op = {};   ///< "aten.linear"
  std::string path = {}; ///< Path of the module.
  /// Everything that identifies the op besides its operands: constants, types.
  std::string what = {};
  /// The sources of the operands: the index of an earlier op of the list and the number of its
  /// result.
  std::vector<std::pair<size_t, uint32_t>> operands = {};
  std::string text = {}; ///< Human-readable text.
};

struct OpDifference {
  enum Kind { Removed, Added, Changed } kind;
  size_t before = 0, after = 0; ///< Indices into the lists; 0 if the op is not in that list.
};

struct OpDiff {
  std::vector<OpDifference> differences; ///< In the order of the lists.
  size_t equal = 0;
};

/// Compares two lists of ops. The result refers to ops by their index.
OpDiff diffOps(const std::vector<DiffOp> &before, const std::vector<DiffOp> &after);

} // namespace cgc::tool

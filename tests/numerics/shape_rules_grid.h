// shape_rules_grid: for each op, the argument combinations for which its type rule is compared with
// LibTorch.
#pragma once

#include "ir/op_kind.h"

#include <ostream>
#include <string>
#include <vector>

namespace cgc::test {

/// How to treat a call that only one side accepts.
enum class Strictness {
  Exact,     ///< The test fails.
  MayRefuse, ///< cgc may refuse what LibTorch accepts.
  MayAccept, ///< cgc may accept what LibTorch refuses.
};

/// One argument list for every combination of choices. Choices are texts: `none true 3 2.5 f16
/// "floor" [1,2]`, a tensor type `f32[2,3]` with strides unless contiguous, or a list `{f32[2];
/// none}`.
struct Grid {
  ir::OpKind op;
  std::string overload;                       ///< The ATen op, for example "aten::add.Tensor".
  std::vector<std::vector<std::string>> args; ///< Choices for each argument of cgc's schema.
  Strictness strictness = Strictness::Exact;
  std::string reason; ///< Why Strictness is not Exact.
  int64_t fill = 1;   ///< The value of every tensor element; 0 for indices.
};

inline void PrintTo(const Grid &grid, std::ostream *os) {
  *os << grid.overload;
}

const std::vector<Grid> &shapeRuleGrids();

} // namespace cgc::test

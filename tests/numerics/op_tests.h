// OpTests: the `; shapes`, `; numerics`, `; gradient` and `; never` lines of the file tests, which
// compare ops with LibTorch. docs/ir.md describes them.
#pragma once

#include "ir/op_kind.h"

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace cgc::test {

/// How to treat a call that only one side accepts.
enum class Strictness {
  Exact,     ///< The test fails.
  MayRefuse, ///< cgc may refuse what LibTorch accepts.
  MayAccept, ///< cgc may accept what LibTorch refuses.
};

/// A `; shapes` line: one argument list for every combination of choices. Choices are texts: `none
/// true 3 2.5 f16 "floor" [1,2]`, a tensor type `f32[2,3]` with strides unless contiguous, or a
/// list
/// `{f32[2]; none}`.
struct Grid {
  std::string where; ///< "ops/add.cgir:3".
  std::string name;  ///< "add_Tensor_3": unique.
  ir::OpKind op;
  std::string overload;                       ///< The ATen op, for example "aten::add.Tensor".
  std::vector<std::vector<std::string>> args; ///< Choices for each argument of cgc's schema.
  Strictness strictness = Strictness::Exact;
  int64_t fill = 1; ///< The value of every tensor element; 0 for indices.
};

/// A `; numerics` line: a graph and its inputs' bound.
struct NumericsCase {
  std::string name;      ///< Of the graph; "add_call" for a call in the line itself.
  std::string graph;     ///< IR text of one graph @g.
  std::string reference; ///< IR text of the graph @g that gives the expected outputs.
  int64_t bound = 3;     ///< Exclusive bound of integer inputs.
};

/// A `; gradient` line: a graph whose gradients are compared with LibTorch's.
struct GradientCase {
  std::string name;
  std::string graph;     ///< IR text of one graph @g.
  std::string reference; ///< IR text of the graph @g that LibTorch differentiates.
  int64_t bound = 3;     ///< Exclusive bound of integer inputs.
  /// Bounds of floating inputs; normal values without.
  std::optional<std::pair<double, double>> range;
  /// The function has a kink at the inputs: finite differences do not tell its gradient.
  bool hasKink = false;
};

/// A kind of tensor that a rule has to be tried with.
enum TensorKind : unsigned { kEmpty = 1, kSizeOne = 2, kStrided = 4, kAllKinds = 7 };

struct OpTests {
  std::vector<Grid> grids;
  std::vector<NumericsCase> cases;
  std::vector<GradientCase> gradients;
  /// `; never` lines: the kinds of tensors that no call of the op accepts in an argument.
  std::map<ir::OpKind, std::map<std::string, unsigned>> impossible;
  std::vector<std::string> errors; ///< Lines that cannot be read.
};

/// The lines of all file tests, read once.
const OpTests &opTests();

inline void PrintTo(const Grid &grid, std::ostream *os) {
  *os << grid.where;
}
inline void PrintTo(const NumericsCase &c, std::ostream *os) {
  *os << c.name;
}
inline void PrintTo(const GradientCase &c, std::ostream *os) {
  *os << c.name;
}

} // namespace cgc::test

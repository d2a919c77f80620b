// GridCall: one combination of the choices of a `; shapes` line, as a call of both cgc and
// LibTorch.
#pragma once

#include "ir/graph.h"
#include "ir/op_def.h"
#include "tests/numerics/op_tests.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cgc::test {

/// The argument lists of one call for both sides. Owns the values that the Args point at.
class GridCall {
public:
  /// Borrows `grid`. `texts` has a choice for each argument.
  GridCall(const Grid &grid, const std::vector<std::string> &texts);

  const std::vector<ir::Arg> &args() const { return args_; }
  /// Returns the LibTorch tensor of argument 0, if it is a tensor.
  std::optional<at::Tensor> self() const;
  bool allContiguous() const;

  /// Returns the text of a graph @g that makes the call, whose results have these types, of inputs.
  std::string text(llvm::ArrayRef<ir::Inferred> results) const;

  /// Returns the results of LibTorch; nullopt if it refuses.
  std::optional<std::vector<at::Tensor>> runLibTorch(std::string &error) const;

private:
  ir::Arg parse(llvm::StringRef text);
  ir::Arg tensor(const ir::TensorType &type);

  const Grid &grid_;
  ir::Graph graph_{"case"};
  std::vector<ir::Arg> args_;
  std::map<const ir::Value *, at::Tensor>
      tensors_; // Only looked up, or visited where order does not matter.
};

/// Returns the number of combinations of a grid's choices.
size_t numCalls(const Grid &grid);
/// Returns the combination with this number.
std::vector<std::string> choose(const Grid &grid, size_t number);

/// The grids of ops whose results LibTorch gives, too, with more numbers: random numbers are
/// others.
std::vector<Grid> gridsOfValues();

/// Returns the text of a graph @g that makes the call of inputs, if its tensors are dense, and both
/// sides accept it.
std::optional<std::string> acceptedCall(const Grid &grid, const std::vector<std::string> &texts);

/// Calls `compare` with combinations in a random order, the same in each run: with those that have
/// a choice that was in none which it accepted. It returns whether it accepts the combination. So
/// each choice of each argument is in one if it is in one of the first few thousand.
void forEachChoice(const Grid &grid,
                   llvm::function_ref<bool(const std::vector<std::string> &texts)> compare);

} // namespace cgc::test

// RowStates: how the values of a training step's graph depend on the rows of its batch.
#pragma once

#include "ir/batch.h"
#include "ir/graph.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace cgc::passes {

/// Unlike BatchFlow, it accepts calls whose result depends on the place of a row in the batch: a
/// tensor that all rows share may have a part for each of them.
class RowStates {
public:
  /// Finds the states of all values. `batch`, at least 2, is dimension 0 of the inputs with rows.
  RowStates(const ir::Graph &graph, int64_t batch);

  ir::BatchState operator[](const ir::Value *value) const { return states_.at(value); }
  /// The state of all results of a node.
  ir::BatchState operator[](const ir::Node &node) const { return states_.at(node.result()); }
  /// The state that `node` takes its operand `value` for: Rows if it reads the part of each row of
  /// a tensor that all rows share, Shared if it reads row numbers as any other numbers.
  ir::BatchState use(const ir::Node &node, const ir::Value *value) const;
  /// Gives `to`, a new value, the state of `from`.
  void copy(const ir::Value *from, const ir::Value *to) { states_[to] = states_.at(from); }

private:
  ir::BatchState visit(const ir::Node &node);
  llvm::SmallVector<ir::BatchState, 4> waysToRead(const ir::Value &value) const;
  ir::BatchState stateOf(const ir::Node &node, ir::BatchCall::StateOf stateOf) const;

  const int64_t batch_;
  llvm::DenseMap<const ir::Value *, ir::BatchState> states_; ///< Looked up, never iterated.
  /// Of the operands that a node does not take for what they are. Looked up, never iterated.
  llvm::DenseMap<std::pair<const ir::Node *, const ir::Value *>, ir::BatchState> uses_;
};

} // namespace cgc::passes

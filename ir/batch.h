// BatchState: how the elements of a value depend on the rows of a batch. The rules of the ops
// (OpDef::batch) compute it; ir/ops/batch_rules.h has them.
#pragma once

#include "ir/op_def.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace cgc::ir {

/// What determines the elements of a tensor, in a graph that computes a batch of several rows.
struct BatchState {
  enum Kind : uint8_t {
    Shared,   ///< No row: all rows have these elements in common.
    Rows,     ///< Each element depends on one row, and each row in the same way.
    RowIndex, ///< Each element is the number of its row.
    Mixed,    ///< None of the above is known.
  };
  Kind kind = Shared;
  /// Of Rows and RowIndex: an element whose index in dimension `dim` is i belongs to row
  /// (i / inner) % batch. So a batch that was merged with other dimensions, as in [batch * 50,
  /// 768] or [50 * batch, 768], can be told apart again.
  int64_t dim = 0, inner = 1;

  static BatchState rows(int64_t dim, int64_t inner = 1) { return {Rows, dim, inner}; }
  static BatchState mixed() { return {.kind = Mixed}; }
  bool operator==(const BatchState &) const = default;
};

/// Returns "shared", "rows in dimension 1", "rows in dimension 0, every 12", "row numbers in
/// dimension 0" or "mixed".
std::string toString(const BatchState &state);

/// A call whose result's state is asked for: its arguments with their states, none of them Mixed.
class BatchCall {
public:
  using StateOf = llvm::function_ref<BatchState(const Value &)>;

  /// All are borrowed. `node` is typed. `batch`, at least 2, is the number of rows.
  BatchCall(const Node &node, int64_t batch, StateOf stateOf)
      : args(schemaOf(node), argsOf(node)), node_(node), batch_(batch), stateOf_(stateOf) {}

  const InferArgs args;
  int64_t batch() const { return batch_; }
  /// The state of a tensor argument, or of an element of a list; Shared for any other argument.
  BatchState state(const Arg &arg) const;
  /// The argument that is first in the op's schema.
  const Arg &first() const;
  /// The argument with this name; null if the op's schema has none.
  const Arg *find(llvm::StringRef name) const;
  /// All tensors among the arguments, those in lists included, each as often as it is used.
  llvm::SmallVector<Arg, 4> tensors() const;
  /// The type of the first result.
  const TensorType &result() const;
  /// Whether an argument is not Shared.
  bool hasRows() const;

private:
  static const Schema &schemaOf(const Node &node);
  static llvm::ArrayRef<Arg> argsOf(const Node &node);

  const Node &node_;
  int64_t batch_;
  StateOf stateOf_;
};

/// Returns the state of the results of a call from those of its arguments: Mixed if one of these is
/// Mixed, else what the op's rule says. An op without a rule mixes rows, unless it is pure and all
/// of its arguments are Shared.
BatchState batchState(const Node &node, int64_t batch, BatchCall::StateOf stateOf);

} // namespace cgc::ir

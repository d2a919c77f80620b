// BatchFlow: finds how the values of a graph depend on the rows of a batch. BatchDifference: finds
// whether a model computes the same for two sizes of the batch.
#pragma once

#include "ir/batch.h"
#include "ir/graph.h"

#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <string>

namespace cgc::passes {

/// The states of all values of a graph, from those of its inputs, op by op.
class BatchFlow {
public:
  /// Input i has one row for each index of dimension `inputDims[i]`, whose size is `batch`, or is
  /// Shared without a dimension. Requires a graph with types and without host ops and in-place ops.
  /// Borrows the graph.
  BatchFlow(const ir::Graph &graph, llvm::ArrayRef<std::optional<int64_t>> inputDims,
            int64_t batch);

  ir::BatchState state(const ir::Value &value) const { return states_.at(&value); }
  /// The node that made `value` Mixed, from arguments that are not: the first, if there are
  /// several. Null unless the value is Mixed.
  const ir::Node *spoiler(const ir::Value &value) const { return spoilers_.lookup(&value); }

private:
  llvm::DenseMap<const ir::Value *, ir::BatchState> states_;
  llvm::DenseMap<const ir::Value *, const ir::Node *> spoilers_;
};

/// A difference between the graphs of an entry for two batches that is more than a size.
struct BatchDifference {
  const ir::Node *node; ///< Of the first graph.
  std::string reason;   ///< "its argument 'other' is 2 for a batch of 2, and 3 for one of 3"
};

/// A graph that `specialize` made of an entry, with the size of the batch.
struct BatchGraph {
  const ir::Graph *graph;
  int64_t batch;
};

/// Compares two such graphs of one entry node by node: ops, arguments and the sizes of results.
/// Sizes may differ if they are the same multiple of the batch. Of the arguments only those may
/// that give a result its sizes. So a model whose branches, numbers or padding depend on the batch
/// is found out. Returns the first difference.
std::optional<BatchDifference> findBatchDifference(const BatchGraph &a, const BatchGraph &b);

} // namespace cgc::passes

// Splitting of a batch, for micro-batches and for ranks.
#pragma once

#include "passes/pass.h"

#include <string>

namespace cgc::passes {

/// How the rows of a batch, dimension 0 of the inputs, are divided.
struct BatchSplit {
  int64_t count = 2; ///< Parts of equal size, at least 2.
  /// The graph computes one part: the inputs have its rows, and cgc.all_gather gives it the results
  /// of the other ranks. Otherwise the graph computes all parts, one after another.
  bool isOverRanks = false;
  std::string parts;  ///< "micro-batches"
  std::string option; ///< What the user may leave out: "--grad-cache".
};

/// Takes the option `count` of the pass `pass`, the parts: 2 (the default) to `most`. Usage for
/// other numbers.
Result<int64_t> takeCount(PassOptions &options, llvm::StringRef pass, int64_t most);

/// Divides the batch of a step before its gradients are taken. Calls that process each row on its
/// own, such as those of the towers of a contrastive model, are made for each part. Calls that
/// combine rows, such as those of its loss, are made once, on the concatenated results.
///
/// Usage if the inputs have no common batch, or if it is not divisible. Unsupported, with the op in
/// the diagnostics, if an op combines rows before a trained matrix is applied, as batch norm does
/// in training mode: what is after it would not be split.
Status splitBatch(ir::Graph &graph, const BatchSplit &split, PassContext &context);

} // namespace cgc::passes

// split-ranks: the part of one rank of a step over the batches of all ranks.
#include "passes/manager/registered_pass.h"
#include "passes/train/batch_splitting.h"
#include "runtime/base/collectives.h"

namespace cgc::passes {

/// Divides the batch between `count` ranks (splitBatch): the inputs become the rows of one rank,
/// and the loss is computed on the gathered results of all of them, as open_clip's does with
/// `gather_with_grad`. Loss and gradients, whose means over the ranks the pass `average-gradients`
/// takes, are those of the whole batch on one rank.
struct SplitRanksPass {
  static constexpr const char *name = "split-ranks";
  static constexpr bool isRequired = true;
  /// Option: count, the number of ranks, at least 2 (the default).
  static Result<SplitRanksPass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  int64_t count = 2;
};

Result<SplitRanksPass> SplitRanksPass::create(PassOptions &options) {
  SplitRanksPass pass;
  CGC_ASSIGN_OR_RETURN(pass.count, takeCount(options, name, kMaxRanks));
  return pass;
}

Result<Changed> SplitRanksPass::run(ir::Graph &graph, PassContext &context) const {
  CGC_TRY(splitBatch(graph,
                     {.count = count, .isOverRanks = true, .parts = "ranks", .option = "--ranks"},
                     context));
  return Changed::Yes;
}

CGC_DEFINE_PASS(SplitRanksPass)

} // namespace cgc::passes

// micro-batches: computes the rows of a batch in parts, one after another.
#include "passes/manager/registered_pass.h"
#include "passes/train/batch_splitting.h"

namespace cgc::passes {

/// Splits the batch into `count` micro-batches (splitBatch). The graph computes the same, but for
/// the numbers that dropout draws: each micro-batch has streams of its own. With the pass
/// `recompute{level=micro-batches}` after `differentiate`, the activations of one micro-batch are
/// in memory at a time (GradCache).
struct MicroBatchesPass {
  static constexpr const char *name = "micro-batches";
  static constexpr bool isRequired = true;
  /// Option: count, at least 2 (the default).
  static Result<MicroBatchesPass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  int64_t count = 2;
};

Result<MicroBatchesPass> MicroBatchesPass::create(PassOptions &options) {
  MicroBatchesPass pass;
  CGC_ASSIGN_OR_RETURN(pass.count, takeCount(options, name, INT32_MAX));
  return pass;
}

Result<Changed> MicroBatchesPass::run(ir::Graph &graph, PassContext &context) const {
  CGC_TRY(splitBatch(graph, {.count = count, .parts = "micro-batches", .option = "--grad-cache"},
                     context));
  return Changed::Yes;
}

CGC_DEFINE_PASS(MicroBatchesPass)

} // namespace cgc::passes

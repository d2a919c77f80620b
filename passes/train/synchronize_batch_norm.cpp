// synchronize-batch-norm: batch normalization by the statistics of the batches of all ranks.
#include "ir/op_builder.h"
#include "ir/ops/collective_rules.h"
#include "ir/ops/normalization_rules.h"
#include "passes/manager/registered_pass.h"
#include "passes/preconditions.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

/// Before `differentiate`, for ranks with batches of equal size: each cgc.batch_norm_train becomes
/// its definition with the statistics of all ranks, as in torch.nn.SyncBatchNorm. So the running
/// statistics are the same on all ranks. Usage if there is none.
struct SynchronizeBatchNormPass {
  static constexpr const char *name = "synchronize-batch-norm";
  static constexpr bool isRequired = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

Value *allReduce(ir::OpBuilder &b, Value *value, llvm::StringRef reduction) {
  return b.call(OpKind::CgcAllReduce, {Arg::List{value}, reduction.str()});
}

/// The statistics over the elements of all ranks: the mean of their means, and the mean of the
/// squared distances from it, in which nothing large cancels out.
ir::rules::Statistics statisticsOfRanks(ir::OpBuilder &b, Value *x, llvm::ArrayRef<int64_t> dims) {
  const auto meanOfRanks = [&](Value *value) {
    return allReduce(b, b.call(OpKind::Mean, {value, Arg::ints(dims), true}),
                     ir::rules::kMeanOfRanks);
  };
  Value *mean = meanOfRanks(x);
  // All distances add up to 0, and so does what the mean gets from their squares. Without it the
  // gradients of both statistics are reduced at once.
  Value *distance = b.sub(x, b.call(OpKind::Detach, {mean}));
  Value *variance = meanOfRanks(b.mul(distance, distance));
  return {mean, variance, ir::rules::rstdOf(b, variance, b.number("eps"))};
}

/// `ranks` is the number of ranks.
ir::Values synchronized(ir::OpBuilder &b, Value *ranks) {
  const ir::TensorType &type = b.input("input")->tensor();
  const auto [sizes, others] = ir::rules::channelsOf(type, b.args().boolean("channels_last"));
  Value *x = b.widened(b.input("input"));
  const int64_t count = type.numElements() / sizes.front();
  Value *countOfRanks = b.mul(b.to(ranks, x->tensor().dtype), count);
  Value *correction = b.div(countOfRanks, b.sub(countOfRanks, 1));
  return ir::rules::batchNormTrain(b, x, statisticsOfRanks(b, x, others), correction);
}

} // namespace

Result<Changed> SynchronizeBatchNormPass::run(ir::Graph &graph, PassContext &) const {
  CGC_TRY(requireTypes(graph));
  CGC_TRY(requireFunctional(graph));
  ir::GraphRewriter rewriter(graph);
  Value *ranks = nullptr; // The plan does not say how many there are: they count themselves.
  for (Node &node : llvm::make_early_inc_range(graph)) {
    if (node.kind() != ir::NodeKind::CallFunction || !node.is(OpKind::CgcBatchNormTrain))
      continue;
    ir::OpBuilder builder(rewriter, &node, &node);
    if (!ranks)
      ranks =
          allReduce(builder, builder.call(OpKind::Full, {Arg::ints(ir::Dims()), 1.0, DType::F32}),
                    ir::rules::kSumOfRanks);
    for (auto [result, value] : llvm::zip_equal(node.results(), synchronized(builder, ranks)))
      rewriter.replaceAllUsesWith(&result, value);
    rewriter.erase(&node);
  }
  if (!ranks)
    return Status(Code::Usage,
                  "no batch norm of the model takes statistics of the batch: export the "
                  "model after train(), or compile the step without --sync-batch-norm");
  return Changed::Yes;
}

CGC_DEFINE_PASS(SynchronizeBatchNormPass)

} // namespace cgc::passes

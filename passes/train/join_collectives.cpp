// join-collectives: buckets of the gradients that ranks reduce.
#include "ir/rewriter.h"
#include "passes/manager/registered_pass.h"
#include "passes/preconditions.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

/// Calls of cgc.all_reduce with one reduction are joined, in the order in which the graph computes
/// their operands, until a bucket has `bytes` bytes. Each bucket is reduced as soon as its last
/// operand is there, beside the rest of the backward pass. Calls in the middle, such as those of
/// synchronized statistics, have buckets of their own: what follows them would wait for gradients.
struct JoinCollectivesPass {
  static constexpr const char *name = "join-collectives";
  /// Option: bytes, at least 1 (the default is 25 MiB, that of PyTorch's DistributedDataParallel).
  static Result<JoinCollectivesPass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  uint64_t bytes = 25 << 20;
};

namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// Calls that become one.
struct Bucket {
  std::string reduction;
  bool isInMiddle; ///< The calls stand before an operand of some other call.
  std::vector<Node *> calls;
  Node *last = nullptr; ///< The node of the last operand.
  uint64_t bytes = 0;
};

/// Joins the calls of a bucket after its last operand.
void join(const Bucket &bucket, ir::GraphRewriter &rewriter) {
  Arg::List operands;
  for (const Node *call : bucket.calls)
    llvm::append_range(operands, call->arg("tensors").list());
  Node *const joined =
      rewriter.create(OpKind::CgcAllReduce, {std::move(operands), bucket.reduction, Arg()},
                      *bucket.calls.back(), &*std::next(bucket.last->getIterator()));
  unsigned next = 0;
  for (Node *call : bucket.calls) {
    for (Value &result : call->results())
      rewriter.replaceAllUsesWith(&result, joined->result(next++));
    rewriter.erase(call);
  }
}

/// The node of the last operand of a call.
Node *lastOperand(const Node &call) {
  Node *last = nullptr;
  call.forEachInput([&](const Value *input) {
    if (!last || last->isBefore(*input->node()))
      last = input->node();
  });
  return last;
}

} // namespace

Result<JoinCollectivesPass> JoinCollectivesPass::create(PassOptions &options) {
  JoinCollectivesPass pass;
  CGC_TRY(options.takePositive("bytes", pass.bytes));
  return pass;
}

Result<Changed> JoinCollectivesPass::run(ir::Graph &graph, PassContext &) const {
  CGC_TRY(requireTypes(graph));
  std::vector<std::pair<Node *, Node *>> calls; // With the node of their last operand.
  for (Node &node : graph)
    if (node.is(OpKind::CgcAllReduce) && node.arg("shard").isNone())
      calls.emplace_back(&node, lastOperand(node));
  llvm::stable_sort(calls,
                    [](const auto &a, const auto &b) { return a.second->isBefore(*b.second); });
  std::vector<Bucket> buckets;
  for (const auto &[call, last] : calls) {
    const bool isInMiddle = call->isBefore(*calls.back().second);
    const std::string reduction = call->arg("reduction").as<std::string>();
    const auto open = llvm::find_if(buckets, [&](const Bucket &bucket) {
      return bucket.reduction == reduction && bucket.isInMiddle == isInMiddle &&
             bucket.bytes < bytes &&
             // What a call of the bucket gives must not be what this one takes.
             llvm::none_of(
                 bucket.calls,
                 [&](const Node *one) { return one == last || one->isBefore(*last); });
    });
    Bucket &bucket =
        open != buckets.end() ? *open : buckets.emplace_back(Bucket{reduction, isInMiddle, {}});
    bucket.calls.push_back(call);
    bucket.last = last;
    for (const Value &result : call->results())
      bucket.bytes += result.tensor().numBytes();
  }
  ir::GraphRewriter rewriter(graph);
  for (const Bucket &bucket : buckets)
    join(bucket, rewriter);
  return rewriter.changed() ? Changed::Yes : Changed::No;
}

CGC_DEFINE_PASS(JoinCollectivesPass)

} // namespace cgc::passes

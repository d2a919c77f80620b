// collective_rules: sizes, reductions and gradients of collectives.
#include "ir/ops/collective_rules.h"

#include "runtime/base/collectives.h"

namespace cgc::ir::rules {
namespace {

Status refuseEmptyList() {
  return refuse("expected 'tensors' to have an element");
}

/// 'ranks', if it is a number of ranks.
Result<int64_t> ranksOf(const InferArgs &args) {
  const int64_t ranks = args.integer("ranks");
  if (ranks < 1 || ranks > kMaxRanks)
    return mismatch("ranks", "from 1 to " + llvm::Twine(kMaxRanks), ranks);
  return ranks;
}

} // namespace

Status checkReduction(const InferArgs &args) {
  const llvm::StringRef reduction = args.str("reduction");
  if (reduction != kSumOfRanks && reduction != kMeanOfRanks && reduction != kMaxOfRanks)
    return refuse("expected 'reduction' to be sum, mean or max, got \"" + reduction + "\"");
  for (const TensorType *tensor : args.tensors("tensors")) {
    if (!isReducible(tensor->dtype))
      return mismatch("tensors", "of numbers that NCCL reduces", *tensor);
    if (reduction == kMeanOfRanks && !isFloating(tensor->dtype))
      return mismatch("tensors", "of floating dtypes for a mean", *tensor);
  }
  return Status::ok();
}

Status checkShard(const InferArgs &args) {
  if (!args.isNone("shard") && (args.integer("shard") < 0 || args.integer("shard") > UINT32_MAX))
    return mismatch("shard", "the number of a shard", args.integer("shard"));
  return Status::ok();
}

Status sameSizes(const InferArgs &args, Results &results) {
  if (args.tensors("tensors").empty())
    return refuseEmptyList();
  for (const TensorType *tensor : args.tensors("tensors"))
    CGC_TRY(addDense(results, tensor->dtype, tensor->sizes));
  return Status::ok();
}

Status gathered(const InferArgs &args, Results &results) {
  CGC_ASSIGN_OR_RETURN(const int64_t ranks, ranksOf(args));
  if (args.tensors("tensors").empty())
    return refuseEmptyList();
  for (const TensorType *tensor : args.tensors("tensors")) {
    if (tensor->rank() == 0)
      return mismatch("tensors", "of at least one dimension", *tensor);
    Dims sizes = tensor->sizes;
    if (__builtin_mul_overflow(sizes[0], ranks, &sizes[0]))
      return mismatch("ranks", "small enough for the result", ranks);
    CGC_TRY(addDense(results, tensor->dtype, sizes));
  }
  return Status::ok();
}

Status scattered(const InferArgs &args, Results &results) {
  CGC_ASSIGN_OR_RETURN(const int64_t ranks, ranksOf(args));
  if (args.tensors("tensors").empty())
    return refuseEmptyList();
  for (const TensorType *tensor : args.tensors("tensors")) {
    if (tensor->rank() == 0 || tensor->sizes[0] % ranks != 0)
      return mismatch("tensors", "of a first dimension that 'ranks' divides", *tensor);
    Dims sizes = tensor->sizes;
    sizes[0] /= ranks;
    CGC_TRY(addDense(results, tensor->dtype, sizes));
  }
  return Status::ok();
}

Status collectiveGradient(GradientBuilder &b, OpKind op, std::vector<Arg> more) {
  Arg::List gradients;
  for (unsigned i = 0; i < b.node().numResults(); ++i)
    gradients.emplace_back(b.gradOrZeros(i));
  // Not in braces: compilers differ in whether those of a list are a list of it (CWG 2137).
  std::vector<Arg> args;
  args.emplace_back(std::move(gradients));
  args.insert(args.end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
  Node *node = b.callNode(op, std::move(args));
  for (const auto &[i, tensor] : llvm::enumerate(b.inputs("tensors")))
    b.set(tensor, node->result(static_cast<unsigned>(i)));
  return Status::ok();
}

} // namespace cgc::ir::rules

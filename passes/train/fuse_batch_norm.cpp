// fuse-batch-norm: fuses a residual and relu into the batch normalization of a training step, and
// the gradient of relu into that of the normalization.
#include "passes/manager/registered_pass.h"
#include "passes/match.h"
#include "passes/run_patterns.h"

namespace cgc::passes {
namespace {

using ir::Node;
using ir::Value;

/// Returns the normalization whose normalized tensor is `value`; nullopt if there is none.
std::optional<ir::CgcBatchNormTrainOp> normalizationOf(const Value *value) {
  auto train = ir::CgcBatchNormTrainOp::of(value);
  return train && train->node().result(0) == value ? train : std::nullopt;
}

/// The candidates are sums of a normalized tensor.
bool fuseResidual(Node &node, PatternRewriter &rewriter) {
  const char *reason = nullptr;
  for (const auto &[normalized, residual] : operandsOfSum(node)) {
    auto train = normalizationOf(normalized);
    if (!train)
      continue;
    if (!normalized->hasOneUser() || normalized == residual)
      reason = "the normalized tensor has other users";
    else if (train->residual() || train->relu())
      reason = "the normalization has a residual or relu already";
    else if (residual->type() != node.result()->type() ||
             normalized->type() != node.result()->type())
      reason = "the residual is broadcast, strided or of another dtype";
    else if (!residual->node()->isBefore(train->node()))
      reason = "the residual is computed after the normalization";
    else {
      rewriter.setArg(&train->node(), "residual", residual);
      rewriter.replaceAllUsesWith(node.result(), normalized);
      return true;
    }
  }
  return reason && rewriter.notifyMatchFailure(node, reason);
}

/// The candidates are those of a normalized tensor.
bool fuseRelu(Node &node, PatternRewriter &rewriter) {
  auto relu = ir::ReluOp::of(node);
  auto train = relu ? normalizationOf(relu->self()) : std::nullopt;
  if (!train)
    return false;
  if (!relu->self()->hasOneUser())
    return rewriter.notifyMatchFailure(node, "other ops read the normalized tensor before relu");
  rewriter.setArg(&train->node(), "relu", true);
  rewriter.replaceAllUsesWith(node.result(), relu->self());
  return true;
}

/// The gradient of relu(normalized + residual) becomes a result of `backward`, with what is added
/// to the gradient of its result: two launches fewer, which would read and write all of it.
bool fuseMaskedGradient(const ir::CgcBatchNormBackwardOp &backward,
                        const ir::CgcReluBackwardOp &relu, PatternRewriter &rewriter) {
  Node &node = backward.node();
  Value *masked = backward.gradOut(), *grad = relu.gradOutput(), *addend = nullptr;
  if (!llvm::all_of(masked->users(),
                    [&](const Node *user) { return user == &node || node.isBefore(*user); }))
    return rewriter.notifyMatchFailure(node, "the gradient of relu has users before it");
  if (const auto operands = operandsOfSum(*grad->node());
      !operands.empty() && grad->hasOneUser() && operands.front().first->type() == grad->type() &&
      operands.front().second->type() == grad->type()) {
    addend = operands.front().second;
    grad = operands.front().first;
  }
  std::vector<ir::Arg> args = node.args().vec();
  args[0] = grad;
  args[args.size() - 2] = relu.node().arg("result");
  if (addend)
    args.back() = addend;
  Node *fresh = rewriter.create(ir::OpKind::CgcBatchNormBackward, std::move(args), node, &node);
  for (unsigned i = 0; i < node.numResults(); ++i)
    replaceAllUsesWith(rewriter, node.result(i), fresh->result(i));
  rewriter.replaceUsesAfter(fresh, masked, fresh->result(node.numResults()));
  return true;
}

/// The candidates are gradients of a normalization whose result a relu read. The kernels compute
/// the sign of the result again, which saves reading it; with a residual, they read the result.
bool fuseReluBackward(Node &node, PatternRewriter &rewriter) {
  auto backward = ir::CgcBatchNormBackwardOp::of(node);
  auto relu = backward ? ir::CgcReluBackwardOp::of(backward->gradOut()) : std::nullopt;
  if (!relu || backward->relu())
    return false;
  Value *result = relu->node().arg("result").value();
  auto train = normalizationOf(result);
  if (!train || !train->relu() || train->node().result(1) != backward->mean() ||
      train->input() != backward->input())
    return rewriter.notifyMatchFailure(node, "the relu is not fused into this normalization");
  if (relu->gradOutput()->tensor().sizes != result->tensor().sizes)
    return rewriter.notifyMatchFailure(node, "the gradient is broadcast");
  if (train->residual())
    return fuseMaskedGradient(*backward, *relu, rewriter);
  if (!backward->gradOut()->hasOneUser())
    return rewriter.notifyMatchFailure(node, "the gradient of relu has other users");
  rewriter.setArg(&node, "grad_out", relu->gradOutput());
  rewriter.setArg(&node, "bias", train->node().arg("bias"));
  rewriter.setArg(&node, "relu", true);
  return true;
}

constexpr Pattern kFuseBatchNormPatterns[] = {
    CGC_PATTERN(fuseResidual),
    CGC_PATTERN(fuseRelu),
    CGC_PATTERN(fuseReluBackward),
};

} // namespace

/// Fuses a residual and relu into cgc.batch_norm_train, and cgc.relu_backward into
/// cgc.batch_norm_backward. Requires a graph with types and gradients.
struct FuseBatchNormPass {
  static constexpr const char *name = "fuse-batch-norm";
  static constexpr bool explains = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> FuseBatchNormPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kFuseBatchNormPatterns, context);
}

CGC_DEFINE_PASS(FuseBatchNormPass)

} // namespace cgc::passes

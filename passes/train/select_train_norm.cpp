// select-train-norm: layer normalization of a training step with the casts and sums around it.
#include "passes/manager/registered_pass.h"
#include "passes/match.h"
#include "passes/run_patterns.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

/// Layer normalization and its gradient read and write the 16-bit tensors of autocast themselves,
/// instead of casts before and after them, and add the residual: to the input in the forward pass,
/// to the gradient of the input in the backward pass.
struct SelectTrainNormPass {
  static constexpr const char *name = "select-train-norm";
  static constexpr bool explains = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// Whether it is a dtype of autocast.
bool isNarrow(DType dtype) {
  return dtypeSize(dtype) == 2 && isFloating(dtype);
}

/// to(layer_norm_statistics(x), 16 bits) becomes layer_norm_statistics in 16 bits, if nothing else
/// reads the normalized values.
bool narrowNorm(Node &node, PatternRewriter &rewriter) {
  const auto to = ir::ToOp::of(node);
  if (!to || !isNarrow(node.result()->tensor().dtype) || to->self()->users().size() != 1)
    return false;
  Node &norm = *to->self()->node();
  if (!norm.is(OpKind::CgcLayerNormStatistics) || to->self() != norm.result() ||
      norm.result()->tensor().dtype != DType::F32 || !norm.arg("dtype").isNone())
    return false;
  std::vector<Arg> args = norm.args().vec();
  args[args.size() - 2] = node.result()->tensor().dtype;
  Node *narrow = rewriter.create(OpKind::CgcLayerNormStatistics, std::move(args), norm, &norm);
  replaceAllUsesWith(rewriter, node.result(), narrow->result());
  for (unsigned i = 1; i < norm.numResults(); ++i)
    replaceAllUsesWith(rewriter, norm.result(i), narrow->result(i));
  return true;
}

/// layer_norm_statistics(x + addend) adds the addend itself, and gives others the sum.
bool addInput(Node &node, PatternRewriter &rewriter) {
  const auto norm = ir::CgcLayerNormStatisticsOp::of(node);
  if (!norm || norm->addend() || norm->input()->tensor().dtype != DType::F32)
    return false;
  Value *sum = norm->input();
  const auto operands = operandsOfSum(*sum->node());
  if (operands.empty())
    return false;
  if (!llvm::all_of(sum->users(),
                    [&](const Node *user) { return user == &node || node.isBefore(*user); }))
    return rewriter.notifyMatchFailure(node, "the sum has users before it");
  for (const auto &[input, addend] : operands) {
    const ir::TensorType &type = input->tensor();
    if (type.dtype != DType::F32 || !isFloating(addend->tensor().dtype) ||
        type.sizes != sum->tensor().sizes || type.sizes != addend->tensor().sizes)
      continue;
    std::vector<Arg> args = node.args().vec();
    args.front() = input;
    args.back() = addend;
    Node *fresh = rewriter.create(OpKind::CgcLayerNormStatistics, std::move(args), node, &node);
    for (unsigned i = 0; i < node.numResults(); ++i)
      replaceAllUsesWith(rewriter, node.result(i), fresh->result(i));
    rewriter.replaceUsesAfter(fresh, sum, fresh->result(3));
    return true;
  }
  return false;
}

/// Replaces the layer_norm_backward `norm` by one with these arguments in the same place, and
/// returns it. Further results follow those of `norm`.
Node *replaceNorm(Node &norm, std::vector<Arg> args, PatternRewriter &rewriter) {
  Node *fresh = rewriter.create(OpKind::CgcLayerNormBackward, std::move(args), norm, &norm);
  for (unsigned i = 0; i < norm.numResults(); ++i)
    replaceAllUsesWith(rewriter, norm.result(i), fresh->result(i));
  return fresh;
}

/// layer_norm_backward(to(grad, f32)) reads the 16-bit gradient itself.
bool readNarrowGradient(Node &node, PatternRewriter &rewriter) {
  const auto norm = ir::CgcLayerNormBackwardOp::of(node);
  const auto to = norm ? ir::ToOp::of(*norm->gradOut()->node()) : std::nullopt;
  if (!to || norm->gradOut()->tensor().dtype != DType::F32 || !isNarrow(to->self()->tensor().dtype))
    return false;
  std::vector<Arg> args = node.args().vec();
  args.front() = to->self();
  replaceNorm(node, std::move(args), rewriter);
  return true;
}

/// x + layer_norm_backward(...) adds x in layer_norm_backward: the gradient of a residual.
bool addResidual(Node &node, PatternRewriter &rewriter) {
  for (const auto &[value, residual] : operandsOfSum(node)) {
    Node &norm = *value->node();
    if (norm.kind() != ir::NodeKind::CallFunction || !norm.is(OpKind::CgcLayerNormBackward) ||
        value != norm.result() || value->users().size() != 1 || !norm.arg("residual").isNone() ||
        !norm.arg("copy").isNone() || !residual->node()->isBefore(norm) ||
        residual->tensor().sizes != value->tensor().sizes ||
        residual->tensor().dtype != value->tensor().dtype)
      continue;
    std::vector<Arg> args = norm.args().vec();
    args[args.size() - 2] = residual;
    Node *fresh = replaceNorm(norm, std::move(args), rewriter);
    replaceAllUsesWith(rewriter, node.result(), fresh->result());
    return true;
  }
  return false;
}

/// to(layer_norm_backward(...), 16 bits) becomes its last result.
bool copyNormGradient(Node &node, PatternRewriter &rewriter) {
  const auto to = ir::ToOp::of(node);
  if (!to || !isNarrow(node.result()->tensor().dtype))
    return false;
  Node &norm = *to->self()->node();
  if (norm.kind() != ir::NodeKind::CallFunction || !norm.is(OpKind::CgcLayerNormBackward) ||
      to->self() != norm.result() || to->self()->tensor().dtype != DType::F32 ||
      !norm.arg("copy").isNone())
    return false;
  std::vector<Arg> args = norm.args().vec();
  args.back() = node.result()->tensor().dtype;
  const unsigned copy = norm.numResults();
  Node *fresh = replaceNorm(norm, std::move(args), rewriter);
  replaceAllUsesWith(rewriter, node.result(), fresh->result(copy));
  return true;
}

constexpr Pattern kSelectTrainNormPatterns[] = {
    CGC_PATTERN(narrowNorm),  CGC_PATTERN(addInput),         CGC_PATTERN(readNarrowGradient),
    CGC_PATTERN(addResidual), CGC_PATTERN(copyNormGradient),
};

} // namespace

Result<Changed> SelectTrainNormPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kSelectTrainNormPatterns, context);
}

CGC_DEFINE_PASS(SelectTrainNormPass)

} // namespace cgc::passes

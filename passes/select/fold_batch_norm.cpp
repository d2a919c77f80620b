// fold-batch-norm: folds a batch_norm with constant parameters into the convolution before it.
#include "passes/canonicalize/patterns.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/run_patterns.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// batch_norm(conv(x, w, b)) = conv(x, w * s, (b - mean) * s + shift) with s = scale / sqrt(var +
/// eps), for each output channel.
bool foldBatchNorm(Node &node, PatternRewriter &rewriter) {
  if (!node.is(OpKind::BatchNorm))
    return false;
  Value *normalized = node.arg("input").value();
  Node *conv = normalized->node();
  if (!conv->is(OpKind::Conv2d) && !conv->is(OpKind::Conv1d))
    return rewriter.notifyMatchFailure(node, "no convolution computes its input");
  if (!normalized->hasOneUser())
    return rewriter.notifyMatchFailure(node, "the convolution has other users");
  Value *weight = conv->arg("weight").value();
  // Without a batch, dimension 1 is not that of the output channels.
  if (normalized->tensor().rank() != weight->tensor().rank())
    return rewriter.notifyMatchFailure(node, "the convolution's input has no batch");
  if (!dependsOnParametersOnly(weight) || !dependsOnParametersOnly(conv->arg("bias")))
    return rewriter.notifyMatchFailure(node, "a parameter of the convolution is not constant");
  if (!hasOneReader(weight))
    return rewriter.notifyMatchFailure(node, "the convolution's weight has other users");
  for (llvm::StringRef name : {"weight", "bias", "running_mean", "running_var"})
    if (!dependsOnParametersOnly(node.arg(name)))
      return rewriter.notifyMatchFailure(node, "'" + name + "' is not constant");

  auto create = [&](OpKind op, std::vector<Arg> args) {
    return rewriter.create(op, std::move(args), node, &node)->result();
  };
  // `fold` evaluates these ops at compile time: in f64, rounded once to the weight's dtype.
  auto wide = [&](const Arg &arg) { return create(OpKind::To, {arg, DType::F64, Arg()}); };
  auto narrow = [&](Value *value) {
    return create(OpKind::To, {value, weight->tensor().dtype, Arg()});
  };
  Value *variance = create(OpKind::Add, {wide(node.arg("running_var")), node.arg("eps"), 1});
  Value *scale = create(OpKind::Rsqrt, {variance});
  if (!node.arg("weight").isNone())
    scale = create(OpKind::Mul, {scale, wide(node.arg("weight"))});
  Value *shift = wide(node.arg("running_mean"));
  shift = conv->arg("bias").isNone() ? create(OpKind::Neg, {shift})
                                     : create(OpKind::Sub, {wide(conv->arg("bias")), shift, 1});
  shift = create(OpKind::Mul, {shift, scale});
  if (!node.arg("bias").isNone())
    shift = create(OpKind::Add, {shift, wide(node.arg("bias")), 1});
  ir::Dims perChannel(weight->tensor().rank(), 1);
  perChannel[0] = weight->tensor().sizes[0];
  Value *scaled = create(OpKind::Mul,
                         {wide(Arg(weight)), create(OpKind::View, {scale, Arg::ints(perChannel)})});

  std::vector<Arg> args = conv->args().vec();
  args[*ir::opSchema(conv->op()).find("weight")] = narrow(scaled);
  args[*ir::opSchema(conv->op()).find("bias")] = narrow(shift);
  Node *folded = rewriter.create(conv->op(), std::move(args), *conv, &node);
  replaceAllUsesWith(rewriter, node.result(), folded->result());
  return true;
}

constexpr Pattern kFoldBatchNormPatterns[] = {
    CGC_PATTERN(foldBatchNorm),
    CGC_PATTERN(dropIdentity),
};

} // namespace

/// Folds a batch_norm with constant parameters into the convolution before it, if nothing else
/// reads the convolution and its weight. Requires `fold` after it, which computes the new weight
/// and bias in f64.
struct FoldBatchNormPass {
  static constexpr const char *name = "fold-batch-norm";
  static constexpr bool explains = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> FoldBatchNormPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kFoldBatchNormPatterns, context);
}

CGC_DEFINE_PASS(FoldBatchNormPass)

} // namespace cgc::passes

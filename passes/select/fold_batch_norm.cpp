// fold-batch-norm: folds a batch_norm with constant parameters into the convolution before it.
#include "passes/canonicalize/patterns.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/run_patterns.h"
#include "passes/select/parameter_math.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// batch_norm(x) = x scale + shift, for each channel, in f64: `fold` evaluates that at compile
/// time.
struct ChannelFactors {
  Value *scale, *shift;
};
/// Those of `node`, a batch_norm of constant parameters, whose input is `bias` more.
ChannelFactors factorsOf(Node &node, const Arg &bias, PatternRewriter &rewriter) {
  const ParameterMath math(node, rewriter);
  Value *variance = math(OpKind::Add, {math.wide(node.arg("running_var")), node.arg("eps"), 1});
  Value *scale = math(OpKind::Rsqrt, {variance});
  if (!node.arg("weight").isNone())
    scale = math(OpKind::Mul, {scale, math.wide(node.arg("weight"))});
  Value *shift = math.wide(node.arg("running_mean"));
  shift =
      bias.isNone() ? math(OpKind::Neg, {shift}) : math(OpKind::Sub, {math.wide(bias), shift, 1});
  shift = math(OpKind::Mul, {shift, scale});
  if (!node.arg("bias").isNone())
    shift = math(OpKind::Add, {shift, math.wide(node.arg("bias")), 1});
  return {scale, shift};
}

/// The first of a batch_norm's parameters that is not constant; null if all are.
const char *parameterThatVaries(const Node &node) {
  for (const char *name : {"weight", "bias", "running_mean", "running_var"})
    if (!dependsOnParametersOnly(node.arg(name)))
      return name;
  return nullptr;
}

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
  if (const char *name = parameterThatVaries(node))
    return rewriter.notifyMatchFailure(node, llvm::StringRef("'") + name + "' is not constant");

  const ParameterMath math(node, rewriter);
  const DType dtype = weight->tensor().dtype;
  const auto [scale, shift] = factorsOf(node, conv->arg("bias"), rewriter);
  ir::Dims perChannel(weight->tensor().rank(), 1);
  perChannel[0] = weight->tensor().sizes[0];
  Value *scaled =
      math(OpKind::Mul, {math.wide(weight), math(OpKind::View, {scale, Arg::ints(perChannel)})});

  std::vector<Arg> args = conv->args().vec();
  args[*ir::opSchema(conv->op()).find("weight")] = math.narrow(scaled, dtype);
  args[*ir::opSchema(conv->op()).find("bias")] = math.narrow(shift, dtype);
  Node *folded = rewriter.create(conv->op(), std::move(args), *conv, &node);
  replaceAllUsesWith(rewriter, node.result(), folded->result());
  return true;
}

/// A batch_norm of 16-bit images behind something else is a convolution of each channel by itself,
/// which select-convolution takes.
bool convolutionOfBatchNorm(Node &node, PatternRewriter &rewriter) {
  if (!node.is(OpKind::BatchNorm) || node.arg("training") != Arg(false) ||
      node.arg("running_mean").isNone() || node.arg("running_var").isNone() ||
      parameterThatVaries(node))
    return false;
  Value *image = node.arg("input").value();
  const ir::TensorType &type = image->tensor();
  if (type.rank() != 4 || dtypeSize(type.dtype) != 2)
    return false;
  const ParameterMath math(node, rewriter);
  const auto [scale, shift] = factorsOf(node, Arg(), rewriter);
  const int64_t channels = type.sizes[1];
  Value *weight = math(OpKind::View, {scale, Arg::ints(ir::Dims{channels, 1, 1, 1})});
  Value *result =
      math(OpKind::Conv2d, {image, math.narrow(weight, type.dtype), math.narrow(shift, type.dtype),
                            Arg::ints(ir::Dims{1, 1}), Arg::ints(ir::Dims{0, 0}),
                            Arg::ints(ir::Dims{1, 1}), channels});
  replaceAllUsesWith(rewriter, node.result(), result);
  return true;
}

constexpr Pattern kFoldBatchNormPatterns[] = {
    CGC_PATTERN(foldBatchNorm),
    CGC_PATTERN(convolutionOfBatchNorm),
    CGC_PATTERN(dropIdentity),
};

} // namespace

/// Folds a batch_norm with constant parameters into the convolution before it, if nothing else
/// reads the convolution and its weight; another one of 16-bit images becomes a convolution.
/// Requires `fold` after it, which computes the new weight and bias in f64.
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

// merge-convolutions: sums of convolutions of one image, and what scales them, as one convolution.
#include "passes/canonicalize/patterns.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/run_patterns.h"
#include "passes/select/parameter_math.h"
#include "passes/select/windows.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Dims;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// Whether `weight` is constant, and a plan need not keep it if the convolution that reads it is
/// replaced. One that is computed here has parameters that nothing else reads.
bool mayReplace(const Value *weight) {
  return dependsOnParametersOnly(weight) &&
         (weight->node()->kind() == ir::NodeKind::GetAttr ? hasOneReader(weight)
                                                          : weight->hasOneUser());
}

/// The convolution of a batch of images that computes `value`, if it has constant parameters and
/// nothing else reads it.
std::optional<ir::Conv2dOp> constantConvolutionOf(const Value *value) {
  auto conv = ir::Conv2dOp::of(value);
  if (!conv || value->tensor().rank() != 4 || !value->hasOneUse() || !mayReplace(conv->weight()) ||
      (conv->bias() && !dependsOnParametersOnly(conv->bias())))
    return std::nullopt;
  return conv;
}

/// The pixels of the image that a window reads, relative to the first that it would read without
/// padding, in one dimension.
struct Reach {
  int64_t first, last;
};
Reach reachOf(const ir::Conv2dOp &conv, int64_t dim) {
  const int64_t padding = dim == 0 ? conv.padding().front() : conv.padding().back();
  return {-padding, conv.weight()->tensor().sizes[2 + dim] - 1 - padding};
}

/// Whether the windows of `conv` are those of `other`, or lie in them.
bool liesIn(const ir::Conv2dOp &conv, const ir::Conv2dOp &other) {
  for (int64_t dim : {0, 1}) {
    const Reach inner = reachOf(conv, dim), outer = reachOf(other, dim);
    if (inner.first < outer.first || inner.last > outer.last)
      return false;
  }
  return true;
}

/// Whether each output channel reads the input channel of its number alone.
bool isDepthwise(const ir::Conv2dOp &conv) {
  const Dims &kernel = conv.weight()->tensor().sizes;
  return kernel[1] == 1 && kernel[0] == conv.groups();
}

/// Why the sum of two convolutions, the first of which has the larger windows, is not one; null if
/// it is.
const char *differenceOf(const ir::Conv2dOp &outer, const ir::Conv2dOp &inner) {
  if (outer.input() != inner.input())
    return "the convolutions are of two images";
  if (outer.result()->tensor() != inner.result()->tensor() ||
      outer.weight()->tensor().dtype != inner.weight()->tensor().dtype)
    return "an operand is broadcast or converted";
  for (const ir::Conv2dOp &conv : {outer, inner}) {
    const Dims &kernel = conv.weight()->tensor().sizes;
    if (!isPair(conv.dilation(), 1, 1) && !(kernel[2] == 1 && kernel[3] == 1))
      return "a convolution is dilated";
  }
  if (!isPair(inner.stride(), outer.stride().front(), outer.stride().back()))
    return "the convolutions have two strides";
  if (outer.groups() != inner.groups() && !(outer.groups() == 1 && isDepthwise(inner)) &&
      !(inner.groups() == 1 && isDepthwise(outer)))
    return "the convolutions have two numbers of groups";
  return liesIn(inner, outer) ? nullptr : "neither window lies in the other";
}

/// The weight [C, 1, kh, kw] of a convolution of each channel by itself as [C, C, kh, kw]. With one
/// more channel of zeros, the elements of the diagonal are C + 1 apart in each case.
Value *denseOf(Value *weight, const ParameterMath &math) {
  const Dims sizes = weight->tensor().sizes;
  const int64_t channels = sizes[0];
  Value *padded =
      math(OpKind::ConstantPadNd, {weight, Arg::ints(Dims{0, 0, 0, 0, 0, channels}), 0});
  Value *rows =
      math(OpKind::View, {padded, Arg::ints(Dims{channels * (channels + 1), sizes[2], sizes[3]})});
  return math(OpKind::View, {math(OpKind::Slice, {rows, 0, 0, channels * channels, 1}),
                             Arg::ints(Dims{channels, channels, sizes[2], sizes[3]})});
}

/// The parameters of a convolution in f64.
struct Parameters {
  Value *weight, *bias; ///< `bias` is null if there is none.
};
Parameters parametersOf(const ir::Conv2dOp &conv, const ParameterMath &math) {
  return {math.wide(conv.weight()), conv.bias() ? math.wide(conv.bias()) : nullptr};
}

/// Replaces the result of `node` by a convolution like `conv` with these parameters and `groups`.
void replaceByConvolution(Node &node, const ir::Conv2dOp &conv, Parameters parameters,
                          int64_t groups, PatternRewriter &rewriter) {
  const ParameterMath math(node, rewriter);
  const DType dtype = conv.weight()->tensor().dtype;
  std::vector<Arg> args = conv.node().args().vec();
  const auto &schema = ir::opSchema(OpKind::Conv2d);
  args[*schema.find("weight")] = math.narrow(parameters.weight, dtype);
  if (parameters.bias)
    args[*schema.find("bias")] = math.narrow(parameters.bias, dtype);
  args[*schema.find("groups")] = groups;
  replaceAllUsesWith(rewriter, node.result(), math(OpKind::Conv2d, std::move(args)));
}

/// conv(x, w) + conv(x, v) = conv(x, w + v), with zeros around the smaller weight; likewise the
/// difference.
bool mergeSum(Node &node, PatternRewriter &rewriter) {
  const bool isDifference = node.is(OpKind::Sub);
  if ((!node.is(OpKind::Add) && !isDifference) || !node.arg("other").isValue() ||
      node.arg("alpha") != Arg(1))
    return false;
  const auto first = constantConvolutionOf(node.arg("self").value()),
             second = constantConvolutionOf(node.arg("other").value());
  if (!first || !second)
    return false;
  const bool firstIsLarger = liesIn(*second, *first);
  const ir::Conv2dOp &outer = firstIsLarger ? *first : *second,
                     &inner = firstIsLarger ? *second : *first;
  if (const char *reason = differenceOf(outer, inner))
    return rewriter.notifyMatchFailure(node, reason);

  const ParameterMath math(node, rewriter);
  Parameters large = parametersOf(outer, math), small = parametersOf(inner, math);
  Dims zeros;
  for (int64_t dim : {1, 0}) {
    const Reach window = reachOf(inner, dim), around = reachOf(outer, dim);
    zeros.append({window.first - around.first, around.last - window.last});
  }
  if (llvm::any_of(zeros, [](int64_t count) { return count != 0; }))
    small.weight = math(OpKind::ConstantPadNd, {small.weight, Arg::ints(zeros), 0});
  if (outer.groups() != inner.groups()) {
    Value *&depthwise = outer.groups() == 1 ? small.weight : large.weight;
    depthwise = denseOf(depthwise, math);
  }
  const Parameters &left = firstIsLarger ? large : small, &right = firstIsLarger ? small : large;
  const auto combine = [&](Value *a, Value *b) {
    if (!b)
      return a;
    if (!a)
      return isDifference ? math(OpKind::Neg, {b}) : b;
    return math(isDifference ? OpKind::Sub : OpKind::Add, {a, b, 1});
  };
  replaceByConvolution(node, outer,
                       {combine(left.weight, right.weight), combine(left.bias, right.bias)},
                       std::min(outer.groups(), inner.groups()), rewriter);
  return true;
}

/// A factor for each channel of a convolution's result goes into its weight and bias.
bool mergeFactor(Node &node, PatternRewriter &rewriter) {
  for (const auto &[factor, product] : operandsOfProduct(node)) {
    const auto conv = constantConvolutionOf(product);
    if (!conv || !dependsOnParametersOnly(factor))
      continue;
    const int64_t channels = product->tensor().sizes[1];
    const ir::TensorType &type = factor->tensor();
    if (type.rank() < 3 || type.numElements() != channels ||
        type.sizes[type.rank() - 3] != channels || node.result()->tensor() != product->tensor() ||
        conv->weight()->tensor().dtype != type.dtype)
      return rewriter.notifyMatchFailure(node, "the factor is not one for each channel");
    if (!keepsPrecision(node, factor, type.dtype))
      return rewriter.notifyMatchFailure(
          node, "the factor is so small that weights of f16 would lose precision");
    const ParameterMath math(node, rewriter);
    Parameters scaled = parametersOf(*conv, math);
    Value *wide = math.wide(factor);
    scaled.weight =
        math(OpKind::Mul,
             {scaled.weight, math(OpKind::View, {wide, Arg::ints(Dims{channels, 1, 1, 1})})});
    if (scaled.bias)
      scaled.bias =
          math(OpKind::Mul, {scaled.bias, math(OpKind::View, {wide, Arg::ints(Dims{channels})})});
    replaceByConvolution(node, *conv, scaled, conv->groups(), rewriter);
    return true;
  }
  return false;
}

/// A convolution plus the number 0, which differs from it in the sign of zeros alone.
bool dropZero(Node &node, PatternRewriter &rewriter) {
  if (!node.is(OpKind::Add) || node.arg("other").asNumber() != 0.0 || !node.arg("self").isValue() ||
      !node.arg("self").value()->node()->is(OpKind::Conv2d) ||
      node.arg("self").value()->tensor() != node.result()->tensor())
    return false;
  replaceAllUsesWith(rewriter, node.result(), node.arg("self").value());
  return true;
}

constexpr Pattern kMergeConvolutionsPatterns[] = {
    CGC_PATTERN(dropZero),
    CGC_PATTERN(mergeFactor),
    CGC_PATTERN(mergeSum),
};

} // namespace

/// Merges convolutions of one image whose results are added or subtracted, and the factors of their
/// channels, into one convolution, as training with parallel branches (RepVGG, MobileOne, FastViT)
/// wants it for inference. Requires `fold` after it, which computes the new weight and bias in f64.
struct MergeConvolutionsPass {
  static constexpr const char *name = "merge-convolutions";
  static constexpr bool explains = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> MergeConvolutionsPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kMergeConvolutionsPatterns, context);
}

CGC_DEFINE_PASS(MergeConvolutionsPass)

} // namespace cgc::passes

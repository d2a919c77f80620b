// select-convolution: convolutions of images with the channels last, with the residual and the
// activation that follow them, and the pools and pointwise ops between them.
#include "passes/canonicalize/patterns.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/run_patterns.h"
#include "passes/select/activations.h"
#include "passes/select/windows.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Dims;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// Channels of 16-bit images that begin at multiples of 16 bytes, as TMA requires.
constexpr int64_t kChannelMultiple = 8;
/// The most products of a result that the kernel for images with few channels adds up, and the
/// largest stride and dilation with which the pixels that its CTAs read fit into shared memory.
constexpr int64_t kStemMaxProducts = 256, kStemMaxStep = 2;

const Arg kOnes = Arg::ints(Dims{1, 1});
const Dims kChannelsLast = {0, 2, 3, 1}, kChannelsSecond = {0, 3, 1, 2};
/// Of a weight with one channel: as its kernel reads it, and back with the channels last.
const Dims kResultsLast = {2, 3, 1, 0}, kResultsFirst = {3, 0, 1, 2};

/// Whether `stem_conv_*` takes a convolution whose images have fewer channels than
/// kChannelMultiple: it reads them as they lie, so that they are neither copied nor padded.
bool isStem(const ir::Conv2dOp &conv) {
  const Dims &weight = conv.weight()->tensor().sizes;
  const auto isSmall = [](int64_t step) { return step <= kStemMaxStep; };
  return conv.groups() == 1 && weight[1] < kChannelMultiple && weight[0] % kChannelMultiple == 0 &&
         weight[1] * weight[2] * weight[3] <= kStemMaxProducts &&
         llvm::all_of(conv.stride(), isSmall) && llvm::all_of(conv.dilation(), isSmall);
}

/// `value`, or what it is a dense copy of.
Value *uncopied(Value *value) {
  auto copy = ir::ContiguousOp::of(value);
  return copy ? copy->self() : value;
}

/// Adds calls before a node.
class ImageBuilder {
public:
  ImageBuilder(Node &node, PatternRewriter &rewriter) : node_(node), rewriter_(rewriter) {}

  Value *operator()(OpKind op, std::vector<Arg> args) const {
    return rewriter_.create(op, std::move(args), node_, &node_)->result();
  }
  /// `value` [a, b, c, d] with dimension b last, dense.
  Value *channelsLast(Value *value) const {
    Value *permuted = (*this)(OpKind::Permute, {uncopied(value), Arg::ints(kChannelsLast)});
    return permuted->tensor().isContiguous() ? permuted : (*this)(OpKind::Contiguous, {permuted});
  }
  /// The same of a weight [O, 1, KH, KW], whose memory is dense as [KH, KW, O].
  Value *channelWeight(Value *weight) const {
    Value *dense =
        (*this)(OpKind::Contiguous, {(*this)(OpKind::Permute, {weight, Arg::ints(kResultsLast)})});
    // [KH, KW, 1, O] to [O, KH, KW, 1].
    return (*this)(OpKind::Permute, {dense, Arg::ints(kResultsFirst)});
  }
  /// `value` with this many zeros behind its last dimension.
  Value *padded(Value *value, int64_t zeros) const {
    return zeros == 0 ? value
                      : (*this)(OpKind::ConstantPadNd, {value, Arg::ints(Dims{0, zeros}), 0});
  }

private:
  Node &node_;
  PatternRewriter &rewriter_;
};

/// Replaces the result of `node` by `image`, whose channels are last; by a copy of it if a reader
/// needs one.
void replaceByImage(Node &node, Value *image, PatternRewriter &rewriter) {
  const ImageBuilder create(node, rewriter);
  Value *result = create(OpKind::Permute, {image, Arg::ints(kChannelsSecond)});
  if (findStridesRefused(node.result(), result->tensor()))
    result = create(OpKind::Contiguous, {result});
  replaceAllUsesWith(rewriter, node.result(), result);
}

/// Replaces the convolution `node` by one of an image with the channels last.
bool replaceConvolution(Node &node, PatternRewriter &rewriter) {
  const auto conv = ir::Conv2dOp::of(node);
  Value *image = conv->input(), *weight = conv->weight();
  const ir::TensorType &type = image->tensor();
  const Dims &kernel = weight->tensor().sizes;
  if (type.rank() != 4)
    return rewriter.notifyMatchFailure(node, "the image has no batch dimension");
  if (dtypeSize(type.dtype) != 2)
    return rewriter.notifyMatchFailure(node, "the image is not of 16-bit floats");
  const ImageBuilder create(node, rewriter);
  const bool stem = isStem(*conv), isDepthwise = conv->groups() > 1 && kernel[1] == 1;
  const int64_t zeros = conv->groups() == 1 && !stem
                            ? (kChannelMultiple - kernel[1] % kChannelMultiple) % kChannelMultiple
                            : 0;
  Value *input = stem ? create(OpKind::Permute, {uncopied(image), Arg::ints(kChannelsLast)})
                      : create.padded(create.channelsLast(image), zeros);
  Value *filters = isDepthwise ? create.channelWeight(weight)
                               : create.padded(create.channelsLast(weight), zeros);
  Value *result = create(OpKind::CgcConv2d,
                         {input, filters, node.arg("bias"), Arg(), "none", node.arg("stride"),
                          node.arg("padding"), node.arg("dilation"), node.arg("groups"), false});
  replaceByImage(node, result, rewriter);
  return true;
}

bool selectConvolution(Node &node, PatternRewriter &rewriter) {
  const auto conv = ir::Conv2dOp::of(node);
  if (!conv)
    return false;
  const Dims &kernel = conv->weight()->tensor().sizes;
  if (!dependsOnParametersOnly(conv->weight()))
    return rewriter.notifyMatchFailure(node, "the weight is not a parameter");
  const bool isPointwise = kernel[2] == 1 && kernel[3] == 1;
  if (conv->input()->tensor().isContiguous() && !isPointwise &&
      isPair(conv->stride(), kernel[2], kernel[3]) && hasPlainWindows(*conv))
    return rewriter.notifyMatchFailure(node, "select-patches takes windows that do not overlap");
  return replaceConvolution(node, rewriter);
}

/// In training a weight is a state, and select-patches has run.
bool selectTrainedConvolution(Node &node, PatternRewriter &rewriter) {
  return ir::Conv2dOp::of(node) && replaceConvolution(node, rewriter);
}

/// The image with dense channels that `value` is, with the channels second; null if it is none.
Value *denseImage(Value *value) {
  const auto permute = ir::PermuteOp::of(uncopied(value));
  return permute && permute->dims() == kChannelsSecond &&
                 !permute->result()->tensor().isContiguous()
             ? permute->self()
             : nullptr;
}

/// Batch normalization of images whose channels are dense.
bool sinkBatchNormTrain(Node &node, PatternRewriter &rewriter) {
  const auto norm = ir::CgcBatchNormTrainOp::of(node);
  Value *image = norm && !norm->channelsLast() ? denseImage(norm->input()) : nullptr;
  if (!image)
    return false;
  std::vector<Arg> args = node.args().vec();
  args.front() = image;
  args.back() = true;
  Node *fresh = rewriter.create(OpKind::CgcBatchNormTrain, std::move(args), node, &node);
  for (unsigned i = 1; i < node.numResults(); ++i)
    replaceAllUsesWith(rewriter, node.result(i), fresh->result(i));
  replaceByImage(node, fresh->result(), rewriter);
  return true;
}

/// That by running statistics takes the pixels as rows.
bool sinkBatchNorm(Node &node, PatternRewriter &rewriter) {
  const auto norm = ir::BatchNormOp::of(node);
  Value *image = norm ? denseImage(norm->input()) : nullptr;
  if (!image)
    return false;
  const ImageBuilder create(node, rewriter);
  const Dims sizes = image->tensor().sizes;
  std::vector<Arg> args = node.args().vec();
  args.front() =
      create(OpKind::View, {image, Arg::ints(Dims{sizes[0] * sizes[1] * sizes[2], sizes[3]})});
  Value *rows = create(OpKind::BatchNorm, std::move(args));
  replaceByImage(node, create(OpKind::View, {rows, Arg::ints(sizes)}), rewriter);
  return true;
}

/// Pools of images whose channels are dense already, between convolutions.
bool selectPool(Node &node, PatternRewriter &rewriter) {
  const auto average = ir::AvgPool2dOp::of(node);
  if (!average && !node.is(OpKind::MaxPool2d))
    return false;
  Value *image = uncopied(node.arg("self").value());
  const ir::TensorType &type = image->tensor();
  if (type.rank() != 4 || type.isContiguous() || denseOrder(type) != kChannelsLast)
    return rewriter.notifyMatchFailure(node, "the image's channels are not dense");
  const ImageBuilder create(node, rewriter);
  std::vector<Arg> args = {create.channelsLast(image),
                           average ? "average" : "max",
                           node.arg("kernel_size"),
                           node.arg("stride"),
                           node.arg("padding"),
                           average ? kOnes : node.arg("dilation"),
                           node.arg("ceil_mode"),
                           average ? node.arg("count_include_pad") : Arg(true),
                           average ? node.arg("divisor_override") : Arg()};
  replaceByImage(node, create(OpKind::CgcPool2d, std::move(args)), rewriter);
  return true;
}

/// `operand` of a pointwise op whose result has sizes [N, C, H, W], with the channels last; null if
/// that takes a copy.
Value *withChannelsLast(Value *operand, const Dims &sizes, const ImageBuilder &create) {
  const ir::TensorType &type = operand->tensor();
  if (type.numElements() == 1 && type.rank() <= 1)
    return operand;
  if (type.rank() == 3 && type.sizes[1] == 1 && type.sizes[2] == 1) // A number for each channel.
    return create(OpKind::Permute, {operand, Arg::ints(Dims{1, 2, 0})});
  const bool isPerChannel = type.rank() == 4 && type.sizes[2] == 1 && type.sizes[3] == 1;
  if (type.rank() != 4 ||
      (!isPerChannel && (type.sizes != sizes || denseOrder(type) != kChannelsLast)))
    return nullptr;
  return create(OpKind::Permute, {operand, Arg::ints(kChannelsLast)});
}

/// A pointwise op, or a cast, of images whose channels are dense computes them as they lie.
bool sinkChannels(Node &node, PatternRewriter &rewriter) {
  if (!(hasTrait(node.op(), ir::kPointwise) || node.is(OpKind::To)) || node.numResults() != 1)
    return false;
  const ir::TensorType &type = node.result()->tensor();
  const auto isImage = [](const Arg &arg) {
    const auto permute = arg.isValue() ? ir::PermuteOp::of(arg.value()) : std::nullopt;
    return permute && permute->dims() == kChannelsSecond &&
           !permute->result()->tensor().isContiguous();
  };
  if (type.rank() != 4 || llvm::none_of(node.args(), isImage))
    return false;
  const ImageBuilder create(node, rewriter);
  std::vector<Arg> args = node.args().vec();
  for (Arg &arg : args) {
    if (!arg.isValue())
      continue;
    Value *operand = withChannelsLast(arg.value(), type.sizes, create);
    if (!operand)
      return rewriter.notifyMatchFailure(node, "another operand's channels are not dense");
    arg = operand;
  }
  replaceByImage(node, create(node.op(), std::move(args)), rewriter);
  return true;
}

/// The mean of each channel of an image whose channels are dense reads it as it lies; that of
/// adaptive_avg_pool2d likewise.
bool sinkMean(Node &node, PatternRewriter &rewriter) {
  const auto mean = ir::MeanOp::of(node);
  const auto pool = ir::AdaptiveAvgPool2dOp::of(node);
  if (!mean && !(pool && isPair(pool->outputSize(), 1, 1)))
    return false;
  Value *image = denseImage(node.arg("self").value());
  if (!image)
    return false;
  Dims dims = mean && mean->dim() ? *mean->dim() : Dims{};
  for (int64_t &dim : dims)
    dim += dim < 0 ? 4 : 0;
  llvm::sort(dims);
  if (mean && dims != Dims{2, 3})
    return rewriter.notifyMatchFailure(node, "it is not the mean of each channel");
  const ImageBuilder create(node, rewriter);
  const Arg keepdim = mean ? node.arg("keepdim") : Arg(true);
  Value *result = create(OpKind::Mean,
                         {image, Arg::ints(Dims{1, 2}), keepdim, mean ? node.arg("dtype") : Arg()});
  if (keepdim == Arg(true))
    result = create(OpKind::View, {result, Arg::ints(node.result()->tensor().sizes)});
  replaceAllUsesWith(rewriter, node.result(), result);
  return true;
}

/// The cgc.conv2d whose result `value` is, with the channels second, if nothing else reads it.
Node *convolutionOf(const Value *value) {
  auto permute = ir::PermuteOp::of(value);
  auto conv = permute && permute->dims() == kChannelsSecond ? ir::CgcConv2dOp::of(permute->self())
                                                            : std::nullopt;
  return conv && value->hasOneUse() && permute->self()->hasOneUse() ? permute->self()->node()
                                                                    : nullptr;
}

/// Replaces the result of `node` by that of `conv` with another argument.
void replaceWith(Node &node, Node &conv, llvm::StringRef name, const Arg &arg,
                 PatternRewriter &rewriter) {
  const ImageBuilder create(node, rewriter);
  std::vector<Arg> args = conv.args().vec();
  args[*ir::opSchema(OpKind::CgcConv2d).find(name)] = arg;
  replaceByImage(node, create(OpKind::CgcConv2d, std::move(args)), rewriter);
}

bool takeConvolutionActivation(Node &node, PatternRewriter &rewriter) {
  const char *activation = activationOf(node);
  Node *conv = activation ? convolutionOf(node.arg("self").value()) : nullptr;
  if (!conv || conv->arg("activation") != Arg("none"))
    return false;
  replaceWith(node, *conv, "activation", activation, rewriter);
  return true;
}

bool takeConvolutionResidual(Node &node, PatternRewriter &rewriter) {
  for (const auto &[residual, product] : operandsOfSum(node)) {
    Node *conv = convolutionOf(product);
    // The kernel for images with few channels adds none.
    if (!conv || conv->arg("activation") != Arg("none") || !conv->arg("residual").isNone() ||
        (conv->arg("groups") == Arg(1) &&
         conv->arg("input").value()->tensor().sizes[3] % kChannelMultiple != 0) ||
        !sameLayout(residual->tensor(), product->tensor()) ||
        residual->tensor().dtype != product->tensor().dtype)
      continue;
    const ImageBuilder create(node, rewriter);
    replaceWith(node, *conv, "residual", create.channelsLast(residual), rewriter);
    return true;
  }
  return false;
}

/// A GEMM loads the rows of X in one piece, and other passes fuse linears with more ops.
bool linearOfPointwise(Node &node, PatternRewriter &rewriter) {
  auto conv = ir::CgcConv2dOp::of(node);
  if (!conv)
    return false;
  Value *weight = conv->weight();
  const Dims kernel = weight->tensor().sizes;
  const bool hasActivation = conv->activation() != "none", hasResidual = conv->residual();
  if (kernel[1] != 1 || kernel[2] != 1 || kernel[3] % kChannelMultiple != 0 || conv->groups() != 1)
    return false;
  if (!isPair(conv->stride(), 1, 1) || !isPair(conv->padding(), 0, 0))
    return rewriter.notifyMatchFailure(node, "its pixels are apart, or padded");
  if (hasActivation && hasResidual)
    return rewriter.notifyMatchFailure(node, "the activation follows the residual");
  const ImageBuilder create(node, rewriter);
  Value *matrix = create(OpKind::View, {weight, Arg::ints(Dims{kernel[0], kernel[3]})});
  Value *linear =
      hasActivation || hasResidual
          ? create(OpKind::CgcLinear, {conv->input(), matrix, node.arg("bias"),
                                       node.arg("residual"), node.arg("activation"), false, false})
          : create(OpKind::Linear, {conv->input(), matrix, node.arg("bias")});
  replaceAllUsesWith(rewriter, node.result(), linear);
  return true;
}

/// Pixels that are apart are averages of one, and then side by side.
bool gatherPixels(Node &node, PatternRewriter &rewriter) {
  const auto conv = ir::CgcConv2dOp::of(node);
  if (!conv)
    return false;
  const Dims &kernel = conv->weight()->tensor().sizes;
  if (kernel[1] != 1 || kernel[2] != 1 || conv->groups() != 1 || isPair(conv->stride(), 1, 1) ||
      !isPair(conv->padding(), 0, 0))
    return false;
  const ImageBuilder create(node, rewriter);
  std::vector<Arg> args = node.args().vec();
  args.front() = create(OpKind::CgcPool2d, {conv->input(), "average", kOnes, node.arg("stride"),
                                            Arg::ints(Dims{0, 0}), kOnes, false, true, Arg()});
  args[*ir::opSchema(OpKind::CgcConv2d).find("stride")] = kOnes;
  replaceAllUsesWith(rewriter, node.result(), create(OpKind::CgcConv2d, std::move(args)));
  return true;
}

constexpr Pattern kSelectConvolutionPatterns[] = {
    CGC_PATTERN(selectConvolution),
    CGC_PATTERN(selectPool),
    CGC_PATTERN(takeConvolutionActivation),
    CGC_PATTERN(takeConvolutionResidual),
    CGC_PATTERN(sinkChannels),
    CGC_PATTERN(sinkMean),
    CGC_PATTERN(normalizeViews),
    CGC_PATTERN(dropIdentity),
    CGC_PATTERN(dropCopy),
};

constexpr Pattern kPointwisePatterns[] = {
    CGC_PATTERN(linearOfPointwise),
    CGC_PATTERN(normalizeViews),
    CGC_PATTERN(dropIdentity),
};

/// Nothing is fused that has no gradient.
constexpr Pattern kTrainingPatterns[] = {
    CGC_PATTERN(selectTrainedConvolution), CGC_PATTERN(selectPool),   CGC_PATTERN(sinkBatchNorm),
    CGC_PATTERN(sinkBatchNormTrain),       CGC_PATTERN(sinkChannels), CGC_PATTERN(sinkMean),
    CGC_PATTERN(normalizeViews),           CGC_PATTERN(dropIdentity), CGC_PATTERN(dropCopy),
};

constexpr Pattern kTrainingPointwisePatterns[] = {
    CGC_PATTERN(gatherPixels),
    CGC_PATTERN(linearOfPointwise),
    CGC_PATTERN(normalizeViews),
    CGC_PATTERN(dropIdentity),
};

} // namespace

/// Replaces convolutions of 16-bit images by cgc.conv2d, whose images have dense channels, with the
/// residual and the activation that follow; then those of single pixels by a linear. With
/// mode=train also batch normalization, and nothing that has no gradient.
struct SelectConvolutionPass {
  static constexpr const char *name = "select-convolution";
  static constexpr bool explains = true;
  /// Option: mode, infer (the default) or train.
  static Result<SelectConvolutionPass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  bool trains = false;
};

Result<SelectConvolutionPass> SelectConvolutionPass::create(PassOptions &options) {
  CGC_ASSIGN_OR_RETURN(const auto mode, options.takeOneOf("mode", {"infer", "train"}));
  return SelectConvolutionPass{mode == "train"};
}

Result<Changed> SelectConvolutionPass::run(ir::Graph &graph, PassContext &context) const {
  using Patterns = llvm::ArrayRef<Pattern>;
  CGC_ASSIGN_OR_RETURN(
      const Changed selected,
      runPatterns(graph,
                  trains ? Patterns(kTrainingPatterns) : Patterns(kSelectConvolutionPatterns),
                  context));
  CGC_ASSIGN_OR_RETURN(
      const Changed pointwise,
      runPatterns(graph,
                  trains ? Patterns(kTrainingPointwisePatterns) : Patterns(kPointwisePatterns),
                  context));
  return selected == Changed::Yes ? selected : pointwise;
}

CGC_DEFINE_PASS(SelectConvolutionPass)

} // namespace cgc::passes

// select-patches: replaces a convolution with non-overlapping windows by cgc.patches and a linear.
#include "passes/canonicalize/patterns.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/run_patterns.h"
#include "passes/select/windows.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

constexpr int64_t kMultiple = 8;  ///< Alignment of the columns that GEMMs prefer.
constexpr int64_t kMaxGrowth = 8; ///< Padding may add at most one part in this many columns.

bool selectPatches(Node &node, PatternRewriter &rewriter) {
  auto conv = ir::Conv2dOp::of(node);
  if (!conv)
    return false;
  Value *image = conv->input(), *weight = conv->weight();
  const ir::Dims &kernel = weight->tensor().sizes;
  if (image->tensor().rank() != 4)
    return rewriter.notifyMatchFailure(node, "the image has no batch dimension");
  if (!isPair(conv->stride(), kernel[2], kernel[3]))
    return rewriter.notifyMatchFailure(node, "the stride is not the kernel's size");
  if (!hasPlainWindows(*conv))
    return rewriter.notifyMatchFailure(node, "it has padding, dilation or groups");
  if (!(isConstant(weight) || readsState(*weight->node())) || !weight->tensor().isContiguous())
    return rewriter.notifyMatchFailure(node, "the weight is not a dense parameter");
  // The result with the channels of a patch side by side.
  ir::TensorType result = node.result()->tensor();
  int64_t batch = result.sizes[0], outputs = result.sizes[1], height = result.sizes[2],
          width = result.sizes[3];
  result.strides = {height * width * outputs, 1, width * outputs, outputs};
  if (const Node *reader = findStridesRefused(node.result(), result))
    return rewriter.notifyMatchFailure(node, [&] { return stridesRefused(*reader, result); });

  auto create = [&](OpKind op, std::vector<Arg> args) {
    return rewriter.create(op, std::move(args), node, &node)->result();
  };
  int64_t pixels = kernel[1] * kernel[2] * kernel[3];
  int64_t padding = (kMultiple - pixels % kMultiple) % kMultiple;
  if (padding * kMaxGrowth > pixels)
    padding = 0;
  Value *patches = create(OpKind::CgcPatches,
                          {image, Arg::ints(ir::Dims{kernel[2], kernel[3]}), pixels + padding});
  Value *matrix = create(OpKind::View, {weight, Arg::ints(ir::Dims{outputs, pixels})});
  if (padding > 0) {
    Value *zeros =
        create(OpKind::Full, {Arg::ints(ir::Dims{outputs, padding}), 0.0, weight->tensor().dtype});
    matrix = create(OpKind::Cat, {Arg(Arg::List{matrix, zeros}), 1});
  }
  Value *gemm = create(OpKind::Linear, {patches, matrix, node.arg("bias")});
  Value *grid = create(OpKind::View, {gemm, Arg::ints(ir::Dims{batch, height, width, outputs})});
  Value *channels = create(OpKind::Permute, {grid, Arg::ints(ir::Dims{0, 3, 1, 2})});
  replaceAllUsesWith(rewriter, node.result(), channels);
  return true;
}

constexpr Pattern kSelectPatchesPatterns[] = {
    CGC_PATTERN(selectPatches),
    CGC_PATTERN(normalizeViews),
    CGC_PATTERN(dropIdentity),
    CGC_PATTERN(dropCopy),
};

} // namespace

/// Replaces a convolution with non-overlapping windows by cgc.patches and a linear. Pads a row of
/// patches to a multiple of 8 where that adds few columns.
struct SelectPatchesPass {
  static constexpr const char *name = "select-patches";
  static constexpr bool explains = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> SelectPatchesPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kSelectPatchesPatterns, context);
}

CGC_DEFINE_PASS(SelectPatchesPass)

} // namespace cgc::passes

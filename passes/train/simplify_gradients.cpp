// simplify-gradients: joins the gradients of parts, and sums 16-bit gradients of parameters in f32.
#include "passes/canonicalize/patterns.h"
#include "passes/manager/registered_pass.h"
#include "passes/run_patterns.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

/// The gradients of parts that are padded and added, such as those of query, key and value in their
/// packed projection, become one concatenation, and no copy at all if they lie side by side
/// already. The gradients of parameters under autocast, sums and products of 16-bit rows that are
/// cast to f32, are written in f32.
struct SimplifyGradientsPass {
  static constexpr const char *name = "simplify-gradients";
  static constexpr bool explains = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// A tensor that zeros pad in one dimension.
struct PaddedPart {
  Value *value;
  int64_t dim, begin; ///< The part begins there in this dimension of the padded tensor.
};

/// The part that `node` pads; nullopt if it pads with other numbers or in several dimensions.
std::optional<PaddedPart> partOf(const Node &node) {
  const auto padded = ir::ConstantPadNdOp::of(node);
  if (!padded || padded->value() != 0)
    return std::nullopt;
  const ir::Dims pad = padded->pad();
  std::optional<PaddedPart> part;
  for (size_t i = 0; i < pad.size(); i += 2) {
    if (pad[i] == 0 && pad[i + 1] == 0)
      continue;
    if (part || pad[i] < 0 || pad[i + 1] < 0)
      return std::nullopt;
    // The last dimension comes first.
    part = PaddedPart{padded->self(),
                      padded->self()->tensor().rank() - 1 - static_cast<int64_t>(i / 2), pad[i]};
  }
  return part;
}

/// Adds the padded parts whose sum `value`, of `sizes`, is. Returns false if it is no such sum.
bool addParts(Value *value, const ir::Dims &sizes, std::vector<PaddedPart> &parts) {
  const Node &node = *value->node();
  if (node.kind() != ir::NodeKind::CallFunction || value->tensor().sizes != sizes)
    return false;
  if (const auto part = partOf(node)) {
    parts.push_back(*part);
    return true;
  }
  const auto operands = operandsOfSum(node);
  return !operands.empty() && addParts(operands[0].first, sizes, parts) &&
         addParts(operands[0].second, sizes, parts);
}

/// sum of pad(part) becomes cat(parts), if the parts cover one dimension.
bool joinParts(Node &node, PatternRewriter &rewriter) {
  std::vector<PaddedPart> parts;
  if (operandsOfSum(node).empty())
    return false;
  const ir::TensorType &type = node.result()->tensor();
  if (!addParts(node.result(), type.sizes, parts))
    return false;
  const int64_t dim = parts.front().dim;
  llvm::sort(parts, [](const PaddedPart &a, const PaddedPart &b) { return a.begin < b.begin; });
  int64_t end = 0;
  Arg::List values;
  for (const PaddedPart &part : parts) {
    if (part.dim != dim || part.begin != end || part.value->tensor().dtype != type.dtype)
      return rewriter.notifyMatchFailure(node, "the padded parts do not cover one dimension");
    end += part.value->tensor().sizes[dim];
    values.emplace_back(part.value);
  }
  if (end != type.sizes[dim])
    return rewriter.notifyMatchFailure(node, "the padded parts do not cover the dimension");
  Node *joined = rewriter.create(OpKind::Cat, {std::move(values), dim}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), joined->result());
  return true;
}

/// cat(views of one tensor) becomes a view of it, if it has the same elements in the same order.
bool joinViews(Node &node, PatternRewriter &rewriter) {
  const auto cat = ir::CatOp::of(node);
  if (!cat)
    return false;
  const ir::TensorType &type = node.result()->tensor();
  const int64_t dim = cat->dim() < 0 ? cat->dim() + type.rank() : cat->dim();
  Value *base = nullptr;
  int64_t begin = 0; // Of the next part, in dimension `dim` of the result.
  for (const Arg &arg : node.arg("tensors").list()) {
    const Layout layout = layoutOf(arg.value());
    const ir::TensorType &part = arg.value()->tensor();
    if (layout.base == arg.value() || (base && layout.base != base))
      return rewriter.notifyMatchFailure(node, "its operands are no views of one tensor");
    base = layout.base;
    bool fits = layout.offset == begin * type.strides[dim];
    for (int64_t d = 0; d < type.rank(); ++d)
      fits &= part.sizes[d] == 1 || part.strides[d] == type.strides[d];
    if (!fits)
      return rewriter.notifyMatchFailure(node, "its operands do not lie side by side");
    begin += part.sizes[dim];
  }
  if (!base || !base->tensor().isContiguous() || base->tensor().dtype != type.dtype ||
      base->tensor().numElements() != type.numElements())
    return rewriter.notifyMatchFailure(node, "its operands are not all of a dense tensor");
  Node *view = rewriter.create(OpKind::View, {base, Arg::ints(type.sizes)}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), view->result());
  return true;
}

/// The 16-bit value that `node` casts to f32, if nothing else uses it; null for other nodes.
Value *widened(const Node &node) {
  const auto to = ir::ToOp::of(node);
  if (!to || node.result()->tensor().dtype != DType::F32 ||
      dtypeSize(to->self()->tensor().dtype) != 2 || to->self()->users().size() != 1)
    return nullptr;
  return to->self();
}

/// Whether the elements of `node` are those of its first argument in another order or other sizes.
bool isReordering(const Node &node) {
  return node.kind() == ir::NodeKind::CallFunction &&
         (node.is(OpKind::Permute) || node.is(OpKind::Reshape));
}

/// to(view(weight gradient), f32), in which the view orders the weight for the product, becomes
/// view(to(weight gradient, f32)).
bool widenBeforeView(Node &node, PatternRewriter &rewriter) {
  const Value *view = widened(node), *value = view;
  while (value && isReordering(*value->node()) && value->hasOneUser())
    value = value->node()->args().front().value();
  if (!value || value == view || !value->hasOneUser() ||
      !(ir::CgcWeightGradientOp::of(value) || ir::CgcConv2dWeightGradientOp::of(value)))
    return false;
  std::vector<Arg> args = view->node()->args().vec();
  args.front() =
      rewriter.create(OpKind::To, {args.front().value(), DType::F32, Arg()}, node, &node)->result();
  replaceAllUsesWith(rewriter, node.result(),
                     rewriter.create(view->node()->op(), std::move(args), node, &node)->result());
  return true;
}

/// to(conv2d_weight_gradient(...), f32) becomes conv2d_weight_gradient in f32.
bool widenConvolutionGradient(Node &node, PatternRewriter &rewriter) {
  const Value *value = widened(node);
  if (!value || !ir::CgcConv2dWeightGradientOp::of(value))
    return false;
  std::vector<Arg> args = value->node()->args().vec();
  args.back() = DType::F32;
  Node *wide = rewriter.create(OpKind::CgcConv2dWeightGradient, std::move(args), node, &node);
  replaceAllUsesWith(rewriter, node.result(), wide->result());
  return true;
}

/// to(weight_gradient(...), f32) becomes weight_gradient in f32.
bool widenWeightGradient(Node &node, PatternRewriter &rewriter) {
  const Value *value = widened(node);
  const auto product = value ? ir::CgcWeightGradientOp::of(*value->node()) : std::nullopt;
  if (!product || product->bias())
    return false;
  Node *wide =
      rewriter.create(OpKind::CgcWeightGradient,
                      {product->gradOut(), product->input(), DType::F32, false}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), wide->result());
  return true;
}

/// to(reshape(sum(x)), f32), or without a reshape, becomes a sum in f32.
bool widenSum(Node &node, PatternRewriter &rewriter) {
  const Value *value = widened(node);
  if (!value)
    return false;
  if (const auto reshape = ir::ReshapeOp::of(*value->node());
      reshape && reshape->self()->users().size() == 1)
    value = reshape->self();
  if (!value->node()->is(OpKind::Sum) || !value->node()->arg("dtype").isNone())
    return false;
  std::vector<Arg> args = value->node()->args().vec();
  args.back() = DType::F32;
  Value *sum = rewriter.create(OpKind::Sum, std::move(args), node, &node)->result();
  const ir::Dims &sizes = node.result()->tensor().sizes;
  if (sum->tensor().sizes != sizes)
    sum = rewriter.create(OpKind::Reshape, {sum, Arg::ints(sizes)}, node, &node)->result();
  replaceAllUsesWith(rewriter, node.result(), sum);
  return true;
}

constexpr Pattern kSimplifyGradientsPatterns[] = {
    CGC_PATTERN(joinParts),
    CGC_PATTERN(joinViews),
    CGC_PATTERN(dropIdentity),
    CGC_PATTERN(widenBeforeView),
    CGC_PATTERN(widenWeightGradient),
    CGC_PATTERN(widenConvolutionGradient),
    CGC_PATTERN(widenSum),
};

} // namespace

Result<Changed> SimplifyGradientsPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kSimplifyGradientsPatterns, context);
}

CGC_DEFINE_PASS(SimplifyGradientsPass)

} // namespace cgc::passes

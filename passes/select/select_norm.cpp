// select-norm: fuses a sum and its layer_norm, or a layer_norm between casts, into
// cgc.add_layer_norm, a layer_norm and the layer_norm or activation that follows it into
// cgc.layer_norm_chain, and division by the norm into cgc.normalize.
#include "passes/manager/registered_pass.h"
#include "passes/match.h"
#include "passes/run_patterns.h"
#include "passes/select/activations.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

bool isParameterOrNone(const Value *value) {
  return !value || value->node()->kind() == ir::NodeKind::GetAttr;
}

/// Returns the parameter `value`, reread before `root`, where it may not be defined yet; none for
/// null.
Arg rereadBefore(Node &root, const Value *value, ir::GraphRewriter &rewriter) {
  if (!value)
    return {};
  const Node &attr = *value->node();
  return rewriter.getAttr(attr.target(), value->type(), attr, &root)->result();
}

/// Matches an f32 layer_norm of 16-bit values, rounded back, as models write it to keep the
/// statistics exact.
bool selectMixedLayerNorm(Node &node, PatternRewriter &rewriter) {
  auto to = ir::ToOp::of(node);
  auto norm = to ? ir::LayerNormOp::of(to->self()) : std::nullopt;
  if (!norm)
    return false;
  if (!norm->result()->hasOneUser())
    return rewriter.notifyMatchFailure(node, "the layer_norm has other users");
  if (norm->normalizedShape().size() != 1)
    return rewriter.notifyMatchFailure(node, "the layer_norm is over several dimensions");
  auto widened = ir::ToOp::of(norm->input());
  if (!widened || norm->result()->tensor().dtype != DType::F32)
    return rewriter.notifyMatchFailure(node, "the layer_norm is not in f32 after a cast");
  Value *input = widened->self();
  const DType dtype = input->tensor().dtype;
  if (dtypeSize(dtype) != 2 || !isFloating(dtype) || dtype != node.result()->tensor().dtype)
    return rewriter.notifyMatchFailure(node, "the casts are not from a 16-bit dtype and back");
  const Node &call = norm->node();
  Node *fused = rewriter.create(
      OpKind::CgcAddLayerNorm,
      {input, Arg(), call.arg("weight"), call.arg("bias"), call.arg("eps"), false}, call, &node);
  replaceAllUsesWith(rewriter, node.result(), fused->result(1));
  return true;
}

/// The candidates are sums that a layer_norm reads.
bool selectAddLayerNorm(Node &node, PatternRewriter &rewriter) {
  Value *sum = node.result();
  const auto operands = operandsOfSum(node);
  std::optional<RowNorm> norm;
  const char *reason = nullptr;
  if (operands.empty())
    return false;
  for (Node *user : sum->users()) {
    std::optional<RowNorm> found = rowNormOf(*user);
    if (!found || found->input != sum)
      continue;
    reason = "weight or bias of the layer_norm is not a parameter";
    if (isParameterOrNone(found->weight) && isParameterOrNone(found->bias)) {
      norm = found;
      break;
    }
  }
  if (!norm)
    return reason && rewriter.notifyMatchFailure(node, reason);
  std::string refusal = "no operand has the sizes of the sum";
  for (const auto &[input, addend] : operands) {
    if (input->tensor().sizes != sum->tensor().sizes)
      continue;
    auto args = [&](const Arg &weight, const Arg &bias) {
      return std::vector<Arg>{input, addend, weight, bias, norm->node->arg("eps"), false};
    };
    auto inferred = ir::inferResults(OpKind::CgcAddLayerNorm,
                                     args(norm->node->arg("weight"), norm->node->arg("bias")),
                                     sum->tensor().device);
    if (!inferred) {
      refusal = "cgc.add_layer_norm refuses it: " + inferred.status().message();
      continue;
    }
    const Arg weight = rereadBefore(node, norm->weight, rewriter);
    const Arg bias = rereadBefore(node, norm->bias, rewriter);
    Node *fused = rewriter.create(OpKind::CgcAddLayerNorm, args(weight, bias), node, &node);
    replaceAllUsesWith(rewriter, sum, fused->result(0));
    replaceAllUsesWith(rewriter, norm->result, fused->result(1));
    return true;
  }
  return rewriter.notifyMatchFailure(node, refusal);
}

/// The candidates are norms and activations of a norm's rows.
bool selectLayerNormChain(Node &node, PatternRewriter &rewriter) {
  const std::optional<RowNorm> next = rowNormOf(node);
  const char *activation = activationOf(node);
  if (!next && !activation)
    return false;
  Value *rows = next ? next->input : node.arg("self").value();
  const auto first = onlyRowNormOf(rows);
  if (!first)
    return false;
  if (next && !onlyRowNormOf(next->result))
    return rewriter.notifyMatchFailure(node, "the rows of the first norm are a result");
  if (!rows->hasOneUser())
    return rewriter.notifyMatchFailure(node, "the rows of the norm have other users");
  const Node &norm = *first->node;
  const auto ofNext = [&](const char *name) { return next ? node.arg(name) : Arg(); };
  Node *fused = rewriter.create(OpKind::CgcLayerNormChain,
                                {first->input, norm.arg("weight"), norm.arg("bias"),
                                 ofNext("weight"), ofNext("bias"), norm.arg("eps"), ofNext("eps"),
                                 next ? Arg("none") : Arg(activation)},
                                node, &node);
  replaceAllUsesWith(rewriter, next ? next->result : node.result(), fused->result());
  return true;
}

/// Returns why `norm` is not the 2-norm of `vectors` over the last dimension, with that dimension
/// kept; null if it is.
const char *whyNotNormOf(ir::LinalgVectorNormOp norm, const Value *vectors) {
  const std::optional<ir::Dims> dims = norm.dim();
  const int64_t last = vectors->tensor().rank() - 1;
  if (norm.self() != vectors)
    return "the norm is of another tensor";
  if (norm.ord() != 2)
    return "the norm is not the 2-norm";
  if (!dims || dims->size() != 1 || (dims->front() != -1 && dims->front() != last) ||
      !norm.keepdim())
    return "the norm is not over the last dimension, with keepdim";
  if (norm.result()->tensor().dtype != vectors->tensor().dtype)
    return "the norm has another dtype";
  return nullptr;
}

/// Returns the 16-bit tensor that `value` is a cast to f32 of, where `quotient` has only readers
/// that cast it back; `value` itself otherwise, in which case `readers` is empty.
Value *narrowed(Value *value, const Value *quotient, std::vector<Node *> &readers) {
  auto widened = ir::ToOp::of(value);
  if (!widened || value->tensor().dtype != DType::F32)
    return value;
  const DType dtype = widened->self()->tensor().dtype;
  if (dtypeSize(dtype) != 2 || !isFloating(dtype))
    return value;
  for (Node *reader : quotient->users())
    if (!reader->is(OpKind::To) || reader->result()->tensor().dtype != dtype)
      return value;
  readers.assign(quotient->users().begin(), quotient->users().end());
  return widened->self();
}

/// Matches vectors / clamp_min(norm(vectors)), also in f32 between casts of 16-bit vectors. The
/// candidates are quotients by a clamped norm.
bool selectNormalize(Node &node, PatternRewriter &rewriter) {
  auto div = ir::DivOp::of(node);
  if (!div || !div->self().isValue() || !div->other().isValue())
    return false;
  Value *vectors = div->self().value(), *divisor = div->other().value();
  bool isShared = !divisor->hasOneUser();
  if (auto expand = ir::ExpandOp::of(divisor)) {
    divisor = expand->self();
    isShared |= !divisor->hasOneUser();
  }
  auto bounded = ir::ClampMinOp::of(divisor);
  auto norm = bounded ? ir::LinalgVectorNormOp::of(bounded->self()) : std::nullopt;
  if (!norm)
    return false;
  if (const char *reason = whyNotNormOf(*norm, vectors))
    return rewriter.notifyMatchFailure(node, reason);
  if (isShared || !norm->result()->hasOneUser())
    return rewriter.notifyMatchFailure(node, "the norm or the divisor has other users");
  const std::optional<double> eps = bounded->min().asNumber();
  if (!eps)
    return rewriter.notifyMatchFailure(node, "the bound of the norm is not a number");
  if (div->roundingMode() || node.result()->tensor().sizes != vectors->tensor().sizes)
    return rewriter.notifyMatchFailure(node, "the quotient is rounded or broadcast");
  std::vector<Node *> casts;
  vectors = narrowed(vectors, node.result(), casts);
  Node *fused = rewriter.create(OpKind::CgcNormalize, {vectors, *eps}, node, &node);
  for (Node *cast : casts)
    replaceAllUsesWith(rewriter, cast->result(), fused->result());
  if (casts.empty())
    replaceAllUsesWith(rewriter, node.result(), fused->result());
  return true;
}

constexpr Pattern kSelectNormPatterns[] = {
    CGC_PATTERN(selectMixedLayerNorm),
    CGC_PATTERN(selectAddLayerNorm),
    CGC_PATTERN(selectLayerNormChain),
    CGC_PATTERN(selectNormalize),
};

} // namespace

/// Fuses a sum and its layer_norm into cgc.add_layer_norm, and replaces an f32 layer_norm of 16-bit
/// values between casts by one without an addend. Fuses a layer_norm, without an addend, and the
/// layer_norm or the activation that alone reads it into cgc.layer_norm_chain. Replaces a division
/// by the norm by cgc.normalize.
struct SelectNormPass {
  static constexpr const char *name = "select-norm";
  static constexpr bool explains = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> SelectNormPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kSelectNormPatterns, context);
}

CGC_DEFINE_PASS(SelectNormPass)

} // namespace cgc::passes

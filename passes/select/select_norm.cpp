// select-norm: fuses a sum and its layer_norm, or a layer_norm between casts, into
// cgc.add_layer_norm, and division by the norm into cgc.normalize.
#include "passes/canonicalize/run_patterns.h"
#include "passes/manager/registered_pass.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// Returns the argument of `norm`, reread before `root`, where it may not be defined yet; nullopt
/// if it is not a parameter.
std::optional<Arg> parameterBefore(const Node &norm, const char *name, Node &root,
                                   ir::GraphRewriter *rewriter) {
  const Arg &arg = norm.arg(name);
  if (arg.isNone())
    return arg;
  Node &attr = *arg.value()->node();
  if (attr.kind() != ir::NodeKind::GetAttr)
    return std::nullopt;
  if (!rewriter)
    return arg;
  return Arg(rewriter->getAttr(attr.target(), arg.value()->type(), attr, &root)->result());
}

/// Returns true if `norm` normalizes `sum` over its last dimension only.
bool normalizes(const Node &norm, const Value *sum) {
  if (norm.is(OpKind::AddLayerNorm))
    return norm.arg("input").value() == sum && norm.arg("addend").isNone();
  return norm.is(OpKind::LayerNorm) && norm.arg("input").value() == sum &&
         norm.arg("normalized_shape").list().size() == 1;
}

/// Matches an f32 layer_norm of 16-bit values, rounded back, as models write it to keep the
/// statistics exact.
bool selectMixedLayerNorm(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::To))
    return false;
  Node *norm = definingOp(node.arg("self").value(), OpKind::LayerNorm);
  if (!norm || !uses.hasOneUser(norm->result()) ||
      norm->arg("normalized_shape").list().size() != 1 ||
      norm->result()->tensor().dtype != DType::F32)
    return false;
  Node *widened = definingOp(norm->arg("input").value(), OpKind::To);
  if (!widened)
    return false;
  Value *input = widened->arg("self").value();
  const DType dtype = input->tensor().dtype;
  if (dtypeSize(dtype) != 2 || !isFloating(dtype) || dtype != node.result()->tensor().dtype)
    return false;
  Node *fused = rewriter.create(
      OpKind::AddLayerNorm,
      {input, Arg(), norm->arg("weight"), norm->arg("bias"), norm->arg("eps")}, *norm, &node);
  replaceAllUsesWith(rewriter, node.result(), fused->result(1));
  return true;
}

bool selectAddLayerNorm(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::Add) || node.arg("alpha").asNumber() != 1.0 ||
      !isFloating(node.result()->tensor().dtype))
    return false;
  Value *sum = node.result();
  auto norm = llvm::find_if(uses.users(sum), [&](Node *user) {
    return normalizes(*user, sum) && parameterBefore(*user, "weight", node, nullptr) &&
           parameterBefore(*user, "bias", node, nullptr);
  });
  if (norm == uses.users(sum).end())
    return false;
  for (unsigned i : {0u, 1u}) {
    const Arg &input = node.arg(i), &addend = node.arg(1 - i);
    if (!input.isValue() || !addend.isValue() ||
        input.value()->tensor().sizes != sum->tensor().sizes)
      continue;
    std::vector<Arg> args = {input, addend, (*norm)->arg("weight"), (*norm)->arg("bias"),
                             (*norm)->arg("eps")};
    if (!ir::inferResults(OpKind::AddLayerNorm, args, sum->tensor().device))
      continue;
    args[2] = *parameterBefore(**norm, "weight", node, &rewriter);
    args[3] = *parameterBefore(**norm, "bias", node, &rewriter);
    Node *fused = rewriter.create(OpKind::AddLayerNorm, std::move(args), node, &node);
    replaceAllUsesWith(rewriter, sum, fused->result(0));
    replaceAllUsesWith(rewriter, &(*norm)->results().back(), fused->result(1));
    return true;
  }
  return false;
}

/// Returns true if `value` is the norm of `vectors` over the last dimension, with that dimension
/// kept, and has only one user.
bool isNormOf(const Value *value, const Arg &vectors, const ir::UseMap &uses) {
  Node *norm = definingOp(value, OpKind::VectorNorm);
  if (!norm || norm->arg("self") != vectors || !uses.hasOneUser(value))
    return false;
  auto dims = norm->arg("dim").isNone() ? std::nullopt : norm->arg("dim").asInts();
  int64_t last = vectors.value()->tensor().rank() - 1;
  return norm->arg("ord").asNumber() == 2.0 && dims && dims->size() == 1 &&
         (dims->front() == -1 || dims->front() == last) && norm->arg("keepdim") == Arg(true) &&
         value->tensor().dtype == vectors.value()->tensor().dtype;
}

bool selectNormalize(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::Div) || !node.arg("rounding_mode").isNone() || !node.arg(0).isValue() ||
      !node.arg(1).isValue() ||
      !(node.result()->tensor().sizes == node.arg(0).value()->tensor().sizes))
    return false;
  const Arg &vectors = node.arg(0);
  Value *divisor = node.arg(1).value();
  if (Node *expand = definingOp(divisor, OpKind::Expand); expand && uses.hasOneUser(divisor))
    divisor = expand->arg(0).value();
  Node *bounded = definingOp(divisor, OpKind::ClampMin);
  if (!bounded || !uses.hasOneUser(divisor) || !bounded->arg("min").asNumber() ||
      !isNormOf(bounded->arg("self").value(), vectors, uses))
    return false;
  Node *fused =
      rewriter.create(OpKind::Normalize, {vectors, *bounded->arg("min").asNumber()}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), fused->result());
  return true;
}

constexpr Pattern kPatterns[] = {selectMixedLayerNorm, selectAddLayerNorm, selectNormalize};

} // namespace

/// Fuses a sum and its layer_norm into cgc.add_layer_norm. Replaces a division by the norm by
/// cgc.normalize.
struct SelectNormPass {
  static constexpr const char *name = "select-norm";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> SelectNormPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kPatterns, context);
}

CGC_DEFINE_PASS(SelectNormPass)

} // namespace cgc::passes

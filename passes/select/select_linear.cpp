// select-linear: fuses a linear and the ops that follow it into cgc.linear.
#include "passes/canonicalize/run_patterns.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

constexpr unsigned kResidual = 3, kActivation = 4; ///< Argument positions of cgc.linear.

/// Returns the arguments of the cgc.linear that computes `value`; nullopt if it is neither that nor
/// a linear, or if `node` is not its only user.
std::optional<std::vector<Arg>> linearBefore(const Arg &arg, const Node &node,
                                             const ir::UseMap &uses) {
  if (!arg.isValue() || !uses.hasOneUser(arg.value()))
    return std::nullopt;
  unsigned reads = 0;
  node.forEachInput([&](Value *input) { reads += input == arg.value(); });
  const Node &linear = *arg.value()->node();
  if (reads != 1)
    return std::nullopt;
  if (linear.is(OpKind::FusedLinear))
    return linear.args().vec();
  if (!linear.is(OpKind::Linear) || linear.arg("weight").value()->tensor().rank() != 2 ||
      !isFloating(arg.value()->tensor().dtype))
    return std::nullopt;
  return std::vector<Arg>{linear.arg(0), linear.arg(1), linear.arg(2), Arg(), "none"};
}

bool linearOfMatmul(Node &node, const ir::UseMap &, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::Matmul))
    return false;
  Value *input = node.arg("self").value(), *matrix = node.arg("other").value();
  const ir::TensorType &type = matrix->tensor();
  if (input->tensor().rank() < 2 || type.rank() != 2 || !isConstant(matrix) ||
      !isFloating(type.dtype))
    return false;
  Value *weight =
      rewriter.create(OpKind::Permute, {matrix, Arg::ints(ir::Dims{1, 0})}, node, &node)->result();
  if (!weight->tensor().isContiguous())
    weight = rewriter.create(OpKind::Contiguous, {weight}, node, &node)->result();
  Node *linear = rewriter.create(OpKind::Linear, {input, weight, Arg()}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), linear->result());
  return true;
}

bool selectQuickGelu(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::Mul))
    return false;
  for (unsigned i : {0u, 1u}) {
    const Arg &x = node.arg(i), &gate = node.arg(1 - i);
    if (!x.isValue() || !gate.isValue() || x == gate || !isFloating(x.value()->tensor().dtype))
      continue;
    Node *sigmoid = definingOp(gate.value(), OpKind::Sigmoid);
    if (!sigmoid || !uses.hasOneUser(sigmoid->result()))
      continue;
    Node *scaled = definingOp(sigmoid->arg(0).value(), OpKind::Mul);
    if (!scaled || !uses.hasOneUser(scaled->result()) || scaled->arg(0) != x ||
        scaled->arg(1) != Arg(1.702))
      continue;
    Node *fused = rewriter.create(OpKind::QuickGelu, {x}, node, &node);
    replaceAllUsesWith(rewriter, node.result(), fused->result());
    return true;
  }
  return false;
}

/// Returns the cgc.linear activation that `node` computes, or null.
const char *activationOf(const Node &node) {
  switch (node.op()) {
  case OpKind::Gelu:
    return node.arg("approximate") == Arg("tanh") ? "gelu_tanh" : "gelu";
  case OpKind::QuickGelu:
    return "quick_gelu";
  case OpKind::Silu:
    return "silu";
  case OpKind::Relu:
    return "relu";
  case OpKind::Tanh:
    return "tanh";
  default:
    return nullptr;
  }
}

bool takeActivation(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  const char *activation = activationOf(node);
  if (!activation)
    return false;
  auto linear = linearBefore(node.arg(0), node, uses);
  if (!linear || (*linear)[kActivation] != Arg("none") || !(*linear)[kResidual].isNone())
    return false;
  (*linear)[kActivation] = activation;
  Node *fused = rewriter.create(OpKind::FusedLinear, std::move(*linear), node, &node);
  replaceAllUsesWith(rewriter, node.result(), fused->result());
  return true;
}

bool takeResidual(Node &node, const ir::UseMap &uses, ir::GraphRewriter &rewriter) {
  if (!node.is(OpKind::Add) || node.arg("alpha").asNumber() != 1.0)
    return false;
  const ir::TensorType &type = node.result()->tensor();
  for (unsigned i : {1u, 0u}) {
    const Arg &residual = node.arg(1 - i);
    auto linear = linearBefore(node.arg(i), node, uses);
    if (!linear || !(*linear)[kResidual].isNone() || !residual.isValue())
      continue;
    for (const Arg &operand : {node.arg(i), residual})
      if (operand.value()->tensor().sizes != type.sizes ||
          operand.value()->tensor().dtype != type.dtype)
        return false;
    (*linear)[kResidual] = residual;
    Node *fused = rewriter.create(OpKind::FusedLinear, std::move(*linear), node, &node);
    replaceAllUsesWith(rewriter, node.result(), fused->result());
    return true;
  }
  return false;
}

constexpr Pattern kPatterns[] = {linearOfMatmul, selectQuickGelu, takeActivation, takeResidual};

} // namespace

/// Replaces a matmul with a constant matrix by a linear, and x * sigmoid(1.702 * x) by
/// cgc.quick_gelu. Fuses a linear with the activation and the residual that follow it into
/// cgc.linear.
struct SelectLinearPass {
  static constexpr const char *name = "select-linear";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> SelectLinearPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kPatterns, context);
}

CGC_DEFINE_PASS(SelectLinearPass)

} // namespace cgc::passes

// select-linear: fuses a linear and the ops that follow it into cgc.linear.
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/match.h"
#include "passes/run_patterns.h"
#include "passes/select/activations.h"
#include "passes/select/parameter_math.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// The arguments of a cgc.linear.
struct FusedLinear {
  Value *input, *weight, *bias, *residual;
  std::string activation;
  bool gates = false;

  std::vector<Arg> args() const {
    auto optional = [](Value *value) { return value ? Arg(value) : Arg(); };
    return {input, weight, optional(bias), optional(residual), activation, false, gates};
  }
};

/// Returns the cgc.linear that computes `value`, without row statistics; nullopt if it is neither
/// that nor a linear.
std::optional<FusedLinear> linearOf(const Value *value) {
  if (auto fused = ir::CgcLinearOp::of(value); fused && !fused->rowStatistics())
    return FusedLinear{fused->input(),    fused->weight(),           fused->bias(),
                       fused->residual(), fused->activation().str(), fused->gates()};
  auto linear = ir::LinearOp::of(value);
  if (!linear || linear->weight()->tensor().rank() != 2 || !isFloating(value->tensor().dtype))
    return std::nullopt;
  return FusedLinear{linear->input(), linear->weight(), linear->bias(), nullptr, "none"};
}

bool linearOfMatmul(Node &node, PatternRewriter &rewriter) {
  auto matmul = ir::MatmulOp::of(node);
  if (!matmul)
    return false;
  Value *input = matmul->self(), *matrix = matmul->other();
  const ir::TensorType &type = matrix->tensor();
  if (!isConstant(matrix))
    return rewriter.notifyMatchFailure(node, "the second operand is not a parameter");
  if (input->tensor().rank() < 2 || type.rank() != 2 || !isFloating(type.dtype))
    return rewriter.notifyMatchFailure(
        node, "the operands are not rows and a matrix of a floating dtype");
  Value *weight =
      rewriter.create(OpKind::Permute, {matrix, Arg::ints(ir::Dims{1, 0})}, node, &node)->result();
  if (!weight->tensor().isContiguous())
    weight = rewriter.create(OpKind::Contiguous, {weight}, node, &node)->result();
  Node *linear = rewriter.create(OpKind::Linear, {input, weight, Arg()}, node, &node);
  replaceAllUsesWith(rewriter, node.result(), linear->result());
  return true;
}

/// Matches x * sigmoid(1.702 * x). The candidates are products with a sigmoid.
bool selectQuickGelu(Node &node, PatternRewriter &rewriter) {
  const char *reason = nullptr;
  for (const auto &[x, gate] : operandsOfProduct(node)) {
    auto sigmoid = ir::SigmoidOp::of(gate);
    if (!sigmoid)
      continue;
    auto scaled = ir::MulOp::of(sigmoid->self());
    if (!scaled || scaled->self() != Arg(x) || scaled->other() != Arg(1.702)) {
      reason = "the sigmoid is not of 1.702 times the other operand";
    } else if (!gate->hasOneUse() || !sigmoid->self()->hasOneUser()) {
      reason = "an intermediate value has another use";
    } else if (!isFloating(x->tensor().dtype)) {
      reason = "the operands are not floats";
    } else {
      Node *fused = rewriter.create(OpKind::CgcQuickGelu, {x}, node, &node);
      replaceAllUsesWith(rewriter, node.result(), fused->result());
      return true;
    }
  }
  return reason && rewriter.notifyMatchFailure(node, reason);
}

bool takeActivation(Node &node, PatternRewriter &rewriter) {
  const char *activation = activationOf(node);
  auto linear = activation ? linearOf(node.arg("self").value()) : std::nullopt;
  if (!linear)
    return false;
  if (!node.arg("self").value()->hasOneUse())
    return rewriter.notifyMatchFailure(node, "the linear has other users");
  if (linear->activation != "none" || linear->residual)
    return rewriter.notifyMatchFailure(node, "the linear has an activation or a residual already");
  linear->activation = activation;
  Node *fused = rewriter.create(OpKind::CgcLinear, linear->args(), node, &node);
  replaceAllUsesWith(rewriter, node.result(), fused->result());
  return true;
}

/// The candidates are sums with the result of a linear.
bool takeResidual(Node &node, PatternRewriter &rewriter) {
  const ir::TensorType &type = node.result()->tensor();
  auto hasType = [&](const Value *value) {
    return value->tensor().sizes == type.sizes && value->tensor().dtype == type.dtype;
  };
  const char *reason = nullptr;
  for (const auto &[residual, product] : operandsOfSum(node)) {
    auto linear = linearOf(product);
    if (!linear)
      continue;
    if (!product->hasOneUse()) {
      reason = "the linear has other users";
    } else if (linear->residual) {
      reason = "the linear has a residual already";
    } else if (!hasType(product) || !hasType(residual)) {
      return rewriter.notifyMatchFailure(node, "an operand is broadcast or converted");
    } else {
      linear->residual = residual;
      Node *fused = rewriter.create(OpKind::CgcLinear, linear->args(), node, &node);
      replaceAllUsesWith(rewriter, node.result(), fused->result());
      return true;
    }
  }
  return reason && rewriter.notifyMatchFailure(node, reason);
}

/// A factor for each column of a linear's result goes into its weight and bias. The candidates are
/// products with a linear and a parameter.
bool takeFactor(Node &node, PatternRewriter &rewriter) {
  const char *reason = nullptr;
  for (const auto &[factor, product] : operandsOfProduct(node)) {
    auto linear = linearOf(product);
    if (!linear || !dependsOnParametersOnly(factor))
      continue;
    Value *weight = linear->weight;
    const int64_t columns = weight->tensor().sizes[0];
    const ir::TensorType &type = factor->tensor();
    if (!product->hasOneUse() || !hasOneReader(weight)) {
      reason = "the linear or its weight has other users";
    } else if (linear->activation != "none" || linear->residual) {
      reason = "the linear has an activation or a residual already";
    } else if (!dependsOnParametersOnly(weight) ||
               (linear->bias && !dependsOnParametersOnly(linear->bias))) {
      reason = "the linear's weight or bias is not a parameter";
    } else if (type.numElements() != columns || type.sizes.back() != columns ||
               node.result()->tensor().sizes != product->tensor().sizes ||
               node.result()->tensor().dtype != type.dtype ||
               weight->tensor().dtype != type.dtype) {
      reason = "the factor is not one for each column";
    } else if (!keepsPrecision(node, factor, type.dtype)) {
      reason = "the factor is so small that weights of f16 would lose precision";
    } else {
      const ParameterMath math(node, rewriter);
      Value *perRow = math.wide(math(OpKind::View, {factor, Arg::ints(ir::Dims{columns, 1})}));
      linear->weight = math.narrow(math(OpKind::Mul, {math.wide(weight), perRow}), type.dtype);
      if (linear->bias)
        linear->bias = math.narrow(
            math(OpKind::Mul, {math.wide(linear->bias),
                               math(OpKind::View, {perRow, Arg::ints(ir::Dims{columns})})}),
            type.dtype);
      Node *fused = rewriter.create(OpKind::CgcLinear, linear->args(), node, &node);
      replaceAllUsesWith(rewriter, node.result(), fused->result());
      return true;
    }
  }
  return reason && rewriter.notifyMatchFailure(node, reason);
}

/// The gate of a gated linear unit: the candidates are products of a linear with rows of its type.
bool takeGate(Node &node, PatternRewriter &rewriter) {
  const ir::TensorType &type = node.result()->tensor();
  const char *reason = nullptr;
  for (const auto &[gate, product] : operandsOfProduct(node)) {
    auto linear = linearOf(product);
    if (!linear || dependsOnParametersOnly(gate)) // takeFactor() is for parameters.
      continue;
    if (!product->hasOneUse()) {
      reason = "the linear has other users";
    } else if (linear->residual) {
      reason = "the linear has a residual already";
    } else if (!sameLayout(gate->tensor(), type) || gate->tensor().dtype != type.dtype ||
               !sameLayout(product->tensor(), type) || product->tensor().dtype != type.dtype) {
      reason = "the gate is broadcast, strided or converted";
    } else {
      linear->residual = gate;
      linear->gates = true;
      Node *fused = rewriter.create(OpKind::CgcLinear, linear->args(), node, &node);
      replaceAllUsesWith(rewriter, node.result(), fused->result());
      return true;
    }
  }
  return reason && rewriter.notifyMatchFailure(node, reason);
}

constexpr Pattern kSelectLinearPatterns[] = {
    CGC_PATTERN(linearOfMatmul), CGC_PATTERN(takeFactor),   CGC_PATTERN(selectQuickGelu),
    CGC_PATTERN(takeActivation), CGC_PATTERN(takeResidual), CGC_PATTERN(takeGate),
};

} // namespace

/// Replaces a matmul with a constant matrix by a linear, and x * sigmoid(1.702 * x) by
/// cgc.quick_gelu. Fuses a linear with the activation and the residual or the gate that follow it
/// into cgc.linear.
struct SelectLinearPass {
  static constexpr const char *name = "select-linear";
  static constexpr bool explains = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> SelectLinearPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kSelectLinearPatterns, context);
}

CGC_DEFINE_PASS(SelectLinearPass)

} // namespace cgc::passes

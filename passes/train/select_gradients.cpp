// select-gradients: fuses a squared error with its gradient, and the gradients of the weight and
// the bias of a linear layer.
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/match.h"
#include "passes/run_patterns.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// The number that each element of a constant is; nullopt if it is none or is several.
std::optional<double> splatValue(Value *value) {
  Value *base = layoutOf(value).base;
  if (!isConstant(base) || base->tensor().numElements() != 1)
    return std::nullopt;
  const auto elements = elementsOf(base);
  return elements ? std::optional(elements->front()) : std::nullopt;
}

/// factor * value.
struct Multiple {
  Value *value;
  double factor;
};
/// The multiple that `node` computes; nullopt if it is no product with a number.
std::optional<Multiple> multipleOf(const Node &node) {
  if (const auto mul = ir::MulOp::of(node); mul && mul->self().isValue())
    if (const auto number = mul->other().asNumber())
      return Multiple{mul->self().value(), *number};
  for (const auto &[number, value] : operandsOfProduct(node))
    if (const auto factor = splatValue(number))
      return Multiple{value, *factor};
  // The gradients of both operands of a square, added up.
  if (const auto add = ir::AddOp::of(node);
      add && add->self().isValue() && add->alpha() == 1 && add->other() == add->self())
    return Multiple{add->self().value(), 2};
  return std::nullopt;
}

/// The sum of the squares of `difference`, or their mean, over all elements; null if none is
/// computed.
Node *sumOfSquares(const Value *difference) {
  const auto isDifference = [&](const Arg &arg) {
    return arg.isValue() && arg.value() == difference;
  };
  for (Node *square : difference->users()) {
    const bool isPower = square->is(OpKind::Pow) && isDifference(square->arg("self")) &&
                         square->arg("exponent").asNumber() == 2.0;
    const bool isProduct = square->is(OpKind::Mul) && isDifference(square->arg("self")) &&
                           isDifference(square->arg("other"));
    if (!isPower && !isProduct)
      continue;
    for (Node *sum : square->result()->users())
      if ((sum->is(OpKind::Mean) || sum->is(OpKind::Sum)) && sum->result()->tensor().rank() == 0)
        return sum;
  }
  return nullptr;
}

/// The candidates are multiples of a difference whose squares are added up.
bool fuseSquaredError(Node &node, PatternRewriter &rewriter) {
  const auto outer = multipleOf(node);
  if (!outer)
    return false;
  Multiple inner = *outer;
  while (const auto next = multipleOf(*inner.value->node()))
    inner = {next->value, inner.factor * next->factor};
  const auto difference = ir::SubOp::of(*inner.value->node());
  Node *loss = difference ? sumOfSquares(inner.value) : nullptr;
  if (!loss)
    return false;
  // Only the last of several multiples is the gradient.
  if (llvm::any_of(node.result()->users(),
                   [](const Node *user) { return multipleOf(*user).has_value(); }))
    return false;
  const Arg &self = difference->self(), &target = difference->other();
  if (difference->alpha() != 1 || !self.isValue() || !target.isValue())
    return rewriter.notifyMatchFailure(node, "the difference is not one of two tensors");
  const ir::TensorType &type = inner.value->tensor();
  const auto fits = [&](const Value *value) {
    return value->tensor().dtype == DType::F32 && value->tensor().sizes == type.sizes;
  };
  if (!fits(self.value()) || !fits(target.value()) || !fits(node.result()) ||
      loss->result()->tensor().dtype != DType::F32 || node.result()->type() != inner.value->type())
    return rewriter.notifyMatchFailure(node, "the difference is broadcast, strided or not of f32");
  const double lossFactor =
      loss->is(OpKind::Mean) ? 1 / static_cast<double>(type.numElements()) : 1;
  Node *fused = rewriter.create(OpKind::CgcSquaredError, {self, target, lossFactor, inner.factor},
                                difference->node(), &difference->node());
  rewriter.replaceAllUsesWith(loss->result(), fused->result(0));
  rewriter.replaceAllUsesWith(node.result(), fused->result(1));
  return true;
}

/// The candidates are sums over the rows of a gradient of which cgc.weight_gradient is taken.
bool fuseBiasGradient(Node &node, PatternRewriter &rewriter) {
  const auto sum = ir::SumOp::of(node);
  if (!sum)
    return false;
  Value *grad = sum->self();
  const auto found = llvm::find_if(grad->users(), [&](const Node *user) {
    const auto weight = ir::CgcWeightGradientOp::of(*user);
    return weight && weight->gradOut() == grad && !weight->bias();
  });
  if (found == grad->users().end())
    return false;
  Node &weight = **found;
  const ir::TensorType &type = grad->tensor(), &result = node.result()->tensor();
  if (type.dtype != DType::F32 || result.dtype != DType::F32 ||
      weight.result(0)->tensor().dtype != DType::F32)
    return rewriter.notifyMatchFailure(node, "only kernels in f32 compute both");
  if (result.numElements() != type.sizes.back() || result.sizes.empty() ||
      result.sizes.back() != type.sizes.back())
    return rewriter.notifyMatchFailure(node, "it is not the sum over all rows");
  Node &first = node.isBefore(weight) ? node : weight;
  Node *fused = rewriter.create(OpKind::CgcWeightGradient,
                                {grad, weight.arg("input"), DType::F32, true}, weight, &first);
  Value *bias = fused->result(1);
  if (bias->tensor().sizes != result.sizes)
    bias =
        rewriter.create(OpKind::Reshape, {bias, Arg::ints(result.sizes)}, node, &first)->result();
  rewriter.replaceAllUsesWith(weight.result(0), fused->result(0));
  rewriter.replaceAllUsesWith(node.result(), bias);
  return true;
}

constexpr Pattern kSelectGradientsPatterns[] = {
    CGC_PATTERN(fuseSquaredError),
    CGC_PATTERN(fuseBiasGradient),
};

} // namespace

/// Fuses the sum or the mean of squared differences with its gradient into cgc.squared_error, and
/// the gradients of the weight and the bias of a linear layer in f32 into one cgc.weight_gradient.
/// Requires a graph with types and gradients.
struct SelectGradientsPass {
  static constexpr const char *name = "select-gradients";
  static constexpr bool explains = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> SelectGradientsPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kSelectGradientsPatterns, context);
}

CGC_DEFINE_PASS(SelectGradientsPass)

} // namespace cgc::passes

// select-updates: lets the product that is the gradient of a small linear layer's weight update the
// weight and the bias.
#include "passes/manager/registered_pass.h"
#include "passes/match.h"
#include "passes/run_patterns.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// The products that lowerSmallGemm() of the backend computes, from 16 bytes at a time. Those of
/// larger layers take longer than the launch and the loads that an update of its own costs, and one
/// launch updates all.
constexpr double kLeastLargeMultiplications = 1 << 27;
constexpr int64_t kLeastExtent = 16, kVector = 4;

bool isSmall(const ir::TensorType &weight, const ir::TensorType &grad) {
  const int64_t n = weight.sizes[0], k = weight.sizes[1];
  const double rows = static_cast<double>(grad.numElements()) / static_cast<double>(n);
  return std::min(n, k) >= kLeastExtent && n % kVector == 0 && k % kVector == 0 &&
         rows * static_cast<double>(weight.numElements()) < kLeastLargeMultiplications;
}

/// The value of which a chain of reshapes is made, each the only user of the one before; null if
/// something else uses one of them.
Value *onlyReadBy(Value *reshaped, const Node &user) {
  const Node *reader = &user;
  for (Value *value = reshaped;; value = value->node()->arg("self").value()) {
    if (value->users().size() != 1 || value->users().front() != reader)
      return nullptr;
    reader = value->node();
    if (!reader->is(OpKind::Reshape))
      return value;
  }
}

/// The step before `step`, if `step` is that + 1 and only `sgd` and the output read it.
Value *countedBy(Value *step, const Node &sgd) {
  const auto add = ir::AddOp::of(*step->node());
  const bool counts = add && add->self().isValue() && add->alpha() == 1 && add->other() == 1 &&
                      add->self().value()->tensor().dtype == DType::I64 &&
                      llvm::all_of(step->users(), [&](const Node *user) {
                        return user == &sgd || user->kind() == ir::NodeKind::Output;
                      });
  return counts ? add->self().value() : nullptr;
}

/// A layer that a step of SGD updates: the positions of its parameters in the step's lists.
struct Layer {
  Node *gradients; ///< cgc.weight_gradient.
  size_t weight;
  std::optional<size_t> bias;
};

/// The first layer that one product can update; nullopt if there is none.
std::optional<Layer> smallLayerOf(const Node &sgd) {
  const Arg::List &parameters = sgd.arg("parameters").list(),
                  &gradients = sgd.arg("gradients").list();
  const auto positionOf = [&](const Value *gradient) -> std::optional<size_t> {
    const auto found = llvm::find_if(
        gradients, [&](const Arg &arg) { return onlyReadBy(arg.value(), sgd) == gradient; });
    return found == gradients.end() ? std::nullopt
                                    : std::optional<size_t>(found - gradients.begin());
  };
  for (const auto &[i, gradient] : llvm::enumerate(gradients)) {
    Node *const source = gradient.value()->node();
    const auto product = ir::WeightGradientOp::of(*source);
    if (!product || positionOf(source->result(0)) != i)
      continue;
    const ir::TensorType &weight = parameters[i].value()->tensor();
    if (weight.dtype != DType::F32 || product->gradOut()->tensor().dtype != DType::F32 ||
        gradient.value()->tensor().dtype != DType::F32 ||
        !isSmall(weight, product->gradOut()->tensor()))
      continue;
    const Layer layer{source, i, product->bias() ? positionOf(source->result(1)) : std::nullopt};
    if (layer.bias.has_value() == product->bias())
      return layer;
  }
  return std::nullopt;
}

/// The candidates are steps of SGD. Takes one layer's parameters from the lists.
bool fuseLinearUpdate(Node &node, PatternRewriter &rewriter) {
  const auto sgd = ir::SgdOp::of(node);
  if (!sgd)
    return false;
  if (sgd->momentum() != 0 || !node.arg("scale").isNone() || !node.arg("skip").isNone() ||
      !node.arg("copy").isNone())
    return rewriter.notifyMatchFailure(node, "it has a momentum, a scale, or 16-bit copies");
  const auto layer = smallLayerOf(node);
  if (!layer)
    return rewriter.notifyMatchFailure(
        node, "no gradient is of a small linear layer in f32 and read by this op alone");

  const Arg::List &parameters = node.arg("parameters").list(),
                  &gradients = node.arg("gradients").list();
  Arg::List otherParameters, otherGradients;
  std::vector<Value *> others;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (i != layer->weight && i != layer->bias) {
      otherParameters.push_back(parameters[i]);
      otherGradients.push_back(gradients[i]);
      others.push_back(node.result(static_cast<unsigned>(i)));
    }
  Value *const step = node.arg("step").value();
  Value *const before = others.empty() ? countedBy(step, node) : nullptr;
  Node *update =
      rewriter.create(OpKind::LinearSgd,
                      {parameters[layer->weight], layer->bias ? parameters[*layer->bias] : Arg(),
                       layer->gradients->arg("grad_out"), layer->gradients->arg("input"),
                       node.arg("lr"), before ? Arg(before) : Arg(), sgd->weightDecay()},
                      *layer->gradients, &node);
  rewriter.replaceAllUsesWith(node.result(static_cast<unsigned>(layer->weight)), update->result(0));
  if (layer->bias)
    rewriter.replaceAllUsesWith(node.result(static_cast<unsigned>(*layer->bias)),
                                update->result(1));
  if (before)
    rewriter.replaceAllUsesWith(step, update->result(layer->bias ? 2 : 1));
  if (others.empty())
    return true;
  Node *rest = rewriter.create(OpKind::Sgd,
                               {std::move(otherParameters), std::move(otherGradients), Arg::List(),
                                node.arg("lr"), node.arg("step"), Arg(), Arg(), 0.0,
                                sgd->dampening(), sgd->weightDecay(), sgd->nesterov(), Arg()},
                               node, &node);
  for (const auto &[i, other] : llvm::enumerate(others))
    rewriter.replaceAllUsesWith(other, rest->result(static_cast<unsigned>(i)));
  return true;
}

constexpr Pattern kPatterns[] = {
    CGC_PATTERN(fuseLinearUpdate),
};

} // namespace

/// Fuses cgc.sgd without a momentum with the cgc.weight_gradient of small linear layers in f32 into
/// cgc.linear_sgd, which also counts the step if nothing else is left to. Requires a graph with
/// types, gradients and an optimizer.
struct SelectUpdatesPass {
  static constexpr const char *name = "select-updates";
  static constexpr bool explains = true;
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> SelectUpdatesPass::run(ir::Graph &graph, PassContext &context) const {
  return runPatterns(graph, kPatterns, context);
}

CGC_DEFINE_PASS(SelectUpdatesPass)

} // namespace cgc::passes

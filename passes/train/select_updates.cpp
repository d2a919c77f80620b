// select-updates: lets the product that is the gradient of a small linear layer's weight update the
// weight and the bias.
#include "passes/manager/registered_pass.h"
#include "passes/match.h"
#include "passes/run_patterns.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"

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

/// Whether a product updates the weight [N, K] from the gradient [..., N] of its layer's output.
/// Its operands stay in memory until the update, so that they must not need more than the gradient.
bool isSmall(const ir::TensorType &weight, const ir::TensorType &grad) {
  const int64_t n = weight.sizes[0], k = weight.sizes[1];
  if (std::min(n, k) < kLeastExtent || n % kVector != 0 || k % kVector != 0)
    return false;
  const int64_t rows = grad.numElements() / n;
  return double(rows) * double(n) * double(k) < kLeastLargeMultiplications &&
         double(rows) * double(n + k) <= double(n) * double(k);
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

/// The layers that products can update.
std::vector<Layer> smallLayersOf(const Node &sgd) {
  const Arg::List &parameters = sgd.arg("parameters").list(),
                  &gradients = sgd.arg("gradients").list();
  llvm::DenseMap<const Value *, size_t> positions;
  for (const auto &[i, gradient] : llvm::enumerate(gradients))
    if (const Value *const source = onlyReadBy(gradient.value(), sgd))
      positions.try_emplace(source, i);
  const auto typeOf = [&](size_t i) -> const ir::TensorType & {
    return parameters[i].value()->tensor();
  };
  std::vector<Layer> layers;
  for (const auto &[i, gradient] : llvm::enumerate(gradients)) {
    Node *const source = gradient.value()->node();
    const auto product = ir::CgcWeightGradientOp::of(*source);
    if (!product || gradient.value() != source->result(0) || !positions.contains(gradient.value()))
      continue;
    const ir::TensorType &weight = typeOf(i), &grad = product->gradOut()->tensor();
    if (weight.dtype != DType::F32 || grad.dtype != DType::F32 ||
        gradient.value()->tensor().dtype != DType::F32 || !isSmall(weight, grad))
      continue;
    Layer layer{source, i, {}};
    if (product->bias()) {
      const auto bias = positions.find(source->result(1));
      if (bias == positions.end() || typeOf(bias->second).dtype != DType::F32 ||
          typeOf(bias->second).sizes != ir::Dims{weight.sizes[0]})
        continue;
      layer.bias = bias->second;
    }
    layers.push_back(layer);
  }
  return layers;
}

/// The candidates are steps of SGD. Leaves the parameters of other layers to another step.
bool fuseLinearUpdates(Node &node, PatternRewriter &rewriter) {
  const auto sgd = ir::CgcSgdOp::of(node);
  if (!sgd)
    return false;
  if (sgd->momentum() != 0 || !node.arg("scale").isNone() || !node.arg("skip").isNone() ||
      !node.arg("copy").isNone())
    return rewriter.notifyMatchFailure(node, "it has a momentum, a scale, or 16-bit copies");
  const std::vector<Layer> layers = smallLayersOf(node);
  if (layers.empty())
    return rewriter.notifyMatchFailure(
        node,
        "no weight and bias of it are of a small linear layer in f32 whose gradients it alone "
        "reads");

  const Arg::List &parameters = node.arg("parameters").list(),
                  &gradients = node.arg("gradients").list();
  llvm::SmallBitVector isTaken(static_cast<unsigned>(parameters.size()));
  for (const Layer &layer : layers) {
    isTaken.set(static_cast<unsigned>(layer.weight));
    if (layer.bias)
      isTaken.set(static_cast<unsigned>(*layer.bias));
  }
  Value *const step = node.arg("step").value();
  Value *const before = isTaken.all() ? countedBy(step, node) : nullptr;
  for (const Layer &layer : layers) {
    // The last product counts the step.
    const bool counts = before && &layer == &layers.back();
    Node *const update =
        rewriter.create(OpKind::CgcLinearSgd,
                        {parameters[layer.weight], layer.bias ? parameters[*layer.bias] : Arg(),
                         layer.gradients->arg("grad_out"), layer.gradients->arg("input"),
                         node.arg("lr"), counts ? Arg(before) : Arg(), sgd->weightDecay()},
                        *layer.gradients, &node);
    rewriter.replaceAllUsesWith(node.result(static_cast<unsigned>(layer.weight)),
                                update->result(0));
    if (layer.bias)
      rewriter.replaceAllUsesWith(node.result(static_cast<unsigned>(*layer.bias)),
                                  update->result(1));
    if (counts)
      rewriter.replaceAllUsesWith(step, update->result(layer.bias ? 2 : 1));
  }
  if (isTaken.all())
    return true;
  Arg::List otherParameters, otherGradients;
  std::vector<Value *> others;
  for (unsigned i = 0; i < parameters.size(); ++i)
    if (!isTaken[i]) {
      otherParameters.push_back(parameters[i]);
      otherGradients.push_back(gradients[i]);
      others.push_back(node.result(i));
    }
  Node *const rest =
      rewriter.create(OpKind::CgcSgd,
                      {std::move(otherParameters), std::move(otherGradients), Arg::List(),
                       node.arg("lr"), node.arg("step"), Arg(), Arg(), 0.0, sgd->dampening(),
                       sgd->weightDecay(), sgd->nesterov(), Arg()},
                      node, &node);
  for (const auto &[i, other] : llvm::enumerate(others))
    rewriter.replaceAllUsesWith(other, rest->result(static_cast<unsigned>(i)));
  return true;
}

constexpr Pattern kSelectUpdatesPatterns[] = {
    CGC_PATTERN(fuseLinearUpdates),
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
  return runPatterns(graph, kSelectUpdatesPatterns, context);
}

CGC_DEFINE_PASS(SelectUpdatesPass)

} // namespace cgc::passes

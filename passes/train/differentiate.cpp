// DifferentiatePass: reverse mode over a specialized graph, by the gradient of each op
// (ir/gradient.h).
#include "passes/train/differentiate.h"

#include "ir/decompose.h"
#include "ir/gradient.h"
#include "ir/text/text.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/preconditions.h"
#include "passes/train/loss_scale.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace cgc::passes {
namespace {

constexpr llvm::StringRef kPrefix = "gradient.";

class Differentiation {
public:
  Differentiation(ir::Graph &graph, ir::Diagnostics &diagnostics)
      : graph_(graph), diagnostics_(diagnostics), rewriter_(graph) {}

  Status run(ir::Value *loss, std::optional<uint64_t> lossScale) {
    findNeeded();
    if (!needed_.contains(loss)) {
      diagnostics_.error(*graph_.output(),
                         "the loss depends on no parameter that is trained: none of those in its "
                         "computation requires a gradient; set requires_grad of some, and leave "
                         "detach() and no_grad() out on the way to the loss");
      return diagnostics_.toStatus(Code::Unsupported);
    }
    output_ = graph_.output();
    findLossNodes(loss);
    gradients_[loss] =
        lossScale
            ? readLossScale(graph_, static_cast<float>(*lossScale), loss->tensor().dtype)
            : rewriter_
                  .create(ir::OpKind::Full, {ir::Arg::ints(ir::Dims()), 1.0, loss->tensor().dtype},
                          *loss->node(), output_)
                  ->result();
    // A rule may replace its call, and adds calls after all that are visited.
    for (ir::Node *node : llvm::reverse(visited_))
      visit(*node);
    eraseDetached();
    for (ir::Diagnostic &error : llvm::reverse(refused_)) // In the model's order.
      diagnostics_.error(std::move(error));
    return diagnostics_.toStatus(Code::Unsupported);
  }

  /// The gradient of each trained state, by path, in the order of their first reads.
  std::vector<std::pair<std::string, ir::Value *>> results() {
    std::vector<std::pair<std::string, ir::Value *>> found;
    for (ir::Node &node : graph_) {
      if (!isTrained(node))
        continue;
      ir::Value *gradient = gradients_.lookup(node.result());
      if (!gradient)
        continue;
      auto known = llvm::find_if(found, [&](auto &one) { return one.first == node.target(); });
      if (known == found.end()) {
        found.emplace_back(node.target(), gradient);
        continue;
      }
      known->second =
          rewriter_.create(ir::OpKind::Add, {known->second, gradient, 1}, node, output_)->result();
    }
    return found;
  }

private:
  bool isTrained(const ir::Node &node) const {
    return readsState(node) &&
           graph_.owner()->findParameter(node.target())->role == StateRole::Parameter &&
           isFloating(node.result()->tensor().dtype);
  }

  /// Values of floating dtypes that depend on a trained state.
  void findNeeded() {
    for (ir::Node &node : graph_) {
      bool needed = isTrained(node);
      if (node.kind() == ir::NodeKind::CallFunction && !node.is(ir::OpKind::Detach))
        node.forEachInput([&](ir::Value *input) { needed |= needed_.contains(input); });
      if (needed)
        for (ir::Value &result : node.results())
          if (result.isTensor() && isFloating(result.tensor().dtype))
            needed_.insert(&result);
    }
  }

  /// The calls that the loss depends on and that depend on a trained state.
  void findLossNodes(ir::Value *loss) {
    llvm::DenseSet<const ir::Node *> used{loss->node()}; // Looked up, never iterated.
    for (ir::Node &node : llvm::reverse(graph_)) {
      if (!used.contains(&node))
        continue;
      node.forEachInput([&](ir::Value *input) { used.insert(input->node()); });
      if (node.kind() == ir::NodeKind::CallFunction &&
          llvm::any_of(node.results(), [&](ir::Value &v) { return needed_.contains(&v); }))
        visited_.push_back(&node);
    }
    std::reverse(visited_.begin(), visited_.end());
  }

  /// Notes an op without a gradient. The error names no op: the types of the inputs are not the
  /// cause.
  void refuse(const ir::Node &node, const std::string &reason) {
    ir::Diagnostic error;
    error.message = "cgc cannot train through " + ir::opName(node.op()).str() + ": " + reason +
                    "; write it with other ops, detach() its input, or add a gradient "
                    "(docs/adding-an-op.md)";
    error.loc = node.loc();
    error.subject = toString(node);
    refused_.push_back(std::move(error));
  }

  void visit(ir::Node &node) {
    if (llvm::none_of(node.results(), [&](ir::Value &v) { return gradients_.contains(&v); }))
      return; // What depends on it has no gradient.
    auto needed = [&](const ir::Value *value) { return needed_.contains(value); };
    ir::GradientBuilder builder(rewriter_, &node, output_, gradients_, needed);
    const ir::GradientFn rule = ir::opDef(node.op()).gradient;
    const Status status = rule ? rule(builder) : Status(Code::Unsupported, "it has no gradient");
    if (status.isOk())
      return;
    refuse(builder.node(), status.message());
    // The ops that it depends on are visited and refused in the same run.
    builder.node().forEachInput([&](ir::Value *input) {
      if (builder.needs(input))
        builder.set(input, builder.zerosLike(input));
    });
  }

  /// Once the gradients are there, a detached value is the value.
  void eraseDetached() {
    for (ir::Node &node : llvm::make_early_inc_range(graph_))
      if (node.kind() == ir::NodeKind::CallFunction && node.is(ir::OpKind::Detach))
        rewriter_.replace(&node, node.arg("self").value());
  }

  ir::Graph &graph_;
  ir::Diagnostics &diagnostics_;
  ir::GraphRewriter rewriter_;
  ir::Node *output_ = nullptr;
  llvm::DenseSet<const ir::Value *> needed_;                 ///< Looked up, never iterated.
  std::vector<ir::Node *> visited_;                          ///< In graph order.
  std::vector<ir::Diagnostic> refused_;                      ///< In reverse graph order.
  llvm::DenseMap<const ir::Value *, ir::Value *> gradients_; ///< Looked up, never iterated.
};

} // namespace

std::vector<std::string> trainingOutputNames(const ir::Graph &graph) {
  std::vector<std::string> names = graph.outputNames();
  for (size_t i = names.size(); i < graph.outputs().size(); ++i)
    names.push_back(graph.outputs().size() == 1 ? "loss" : "output" + std::to_string(i));
  return names;
}

std::string gradientName(llvm::StringRef path) {
  return kPrefix.str() + path.str();
}

llvm::StringRef gradientPath(llvm::StringRef name) {
  return name.consume_front(kPrefix) ? name : "";
}

Result<DifferentiatePass> DifferentiatePass::create(PassOptions &options) {
  DifferentiatePass pass;
  CGC_ASSIGN_OR_RETURN(const auto loss, options.takeNumber("loss"));
  pass.loss = loss.value_or(0);
  CGC_ASSIGN_OR_RETURN(pass.lossScale, options.takeNumber("loss-scale"));
  return pass;
}

Result<Changed> DifferentiatePass::run(ir::Graph &graph, PassContext &context) const {
  CGC_TRY(requireTypes(graph));
  CGC_TRY(requireFunctional(graph));
  ir::Diagnostics own;
  ir::Diagnostics &diagnostics = context.diagnostics ? *context.diagnostics : own;
  if (loss >= graph.outputs().size()) {
    diagnostics.error(*graph.output(), "there is no output " + std::to_string(loss) +
                                           " to differentiate; the method has " +
                                           std::to_string(graph.outputs().size()) +
                                           ", the first of which is 0");
    return diagnostics.toStatus(Code::Unsupported);
  }
  const ir::Arg &output = graph.outputs()[loss];
  const ir::TensorType *const type = output.isValue() ? &output.value()->tensor() : nullptr;
  if (!type || type->rank() != 0 || !isFloating(type->dtype)) {
    diagnostics.error(*graph.output(),
                      "the loss is " + (type ? toString(output.value()->type()) : "no tensor") +
                          ", and training needs a floating scalar; " +
                          (type && !isFloating(type->dtype)
                               ? "compute it without argmax, comparisons and casts to integers"
                               : "reduce it, for example with mean()") +
                          (graph.outputs().size() > 1 ? ", or choose another output" : ""));
    return diagnostics.toStatus(Code::Unsupported);
  }
  std::vector<std::string> names = trainingOutputNames(graph);
  ir::decomposeCalls(graph, [](const ir::Node &node) { return !ir::opDef(node.op()).gradient; });
  Differentiation differentiation(graph, diagnostics);
  CGC_TRY(differentiation.run(graph.outputs()[loss].value(), lossScale));
  std::vector<ir::Arg> outputs = graph.outputs();
  const auto toFront = [&](auto &list) {
    std::rotate(list.begin(), list.begin() + loss, list.begin() + loss + 1);
  };
  toFront(outputs);
  toFront(names);
  for (const auto &[path, gradient] : differentiation.results()) {
    outputs.emplace_back(gradient);
    names.push_back(gradientName(path));
  }
  graph.setOutputs(std::move(outputs), std::move(names));
  return Changed::Yes;
}

CGC_DEFINE_PASS(DifferentiatePass)

} // namespace cgc::passes

// OpPattern: parses the texts, matches from the root up, and copies the replacement.
#include "passes/substitution/op_pattern.h"

#include "ir/text/text.h"
#include "ir/verifier.h"
#include "runtime/base/check.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::Value;

/// Parses `text`, named `what` in messages: one graph of op calls with one output.
Result<std::unique_ptr<ir::Module>> parseGraph(llvm::StringRef text, llvm::StringRef what) {
  auto refuse = [&](const std::string &why) {
    return Status(Code::Failed, what.str() + ": " + why);
  };
  ir::Diagnostics diagnostics;
  auto module = ir::parseModule(text, what, diagnostics);
  if (!module) // Each error names the text, its line and column.
    return diagnostics.toStatus(Code::Failed);
  if (!ir::verify(*module, diagnostics))
    return refuse(diagnostics.render());
  if (module->graphs().size() != 1 || !module->submodules().empty() ||
      !module->parameters().empty())
    return refuse("expected one graph, and no module");
  const ir::Graph &graph = *module->graphs()[0];
  for (const Node &node : graph)
    if (node.kind() == ir::NodeKind::GetAttr || node.kind() == ir::NodeKind::CallModule ||
        node.isInPlace())
      return refuse("expected calls of ops that are not in place, got " + ir::toString(node));
  if (graph.outputs().size() != 1 || !graph.outputs().front().isValue())
    return refuse("expected one output, a value");
  return module;
}

/// Returns true if every call of `graph` leads to its output.
bool isConnected(const ir::Graph &graph) {
  llvm::DenseSet<const Node *> needed; // Looked up, never iterated.
  for (const Node &node : llvm::reverse(graph)) {
    bool isCall = node.kind() == ir::NodeKind::CallFunction;
    if (isCall && !needed.contains(&node))
      return false;
    node.forEachInput([&](Value *value) { needed.insert(value->node()); });
  }
  return true;
}

/// Returns true if the pattern's type, which may be dynamic, allows `type`.
bool allows(const ir::Type &pattern, const ir::Type &type) {
  return pattern.isDynamic() || (type.isTensor() && pattern.tensor().dtype == type.tensor().dtype &&
                                 pattern.tensor().sizes == type.tensor().sizes);
}

/// One match attempt at one root.
class Matcher {
public:
  Matcher(const Node &root, const PatternRewriter &rewriter) : root_(root), rewriter_(rewriter) {}

  bool matches(const Node &pattern, Node &node) {
    if (node.kind() != ir::NodeKind::CallFunction || !node.is(pattern.op()) || node.isInPlace() ||
        node.target() != pattern.target() || node.args().size() != pattern.args().size() ||
        node.numResults() != pattern.numResults())
      return rewriter_.notifyMatchFailure(
          root_, [&] { return differs(ir::toString(pattern), ir::toString(node)); });
    for (unsigned i = 0; i < node.numResults(); ++i)
      if (!allows(pattern.result(i)->type(), node.result(i)->type()))
        return rewriter_.notifyMatchFailure(
            root_, [&] { return differs(ir::toString(pattern), ir::toString(node)); });
    return llvm::all_of_zip(pattern.args(), node.args(),
                            [&](const Arg &p, const Arg &a) { return matches(p, a); });
  }

  /// Returns the argument bound to `input` of the pattern.
  const Arg &bound(const Value *input) const { return bound_.find(input)->second; }

private:
  bool matches(const Arg &pattern, const Arg &arg) {
    const Value *value = pattern.isValue() ? pattern.value() : nullptr;
    if (value && value->node()->kind() == ir::NodeKind::Placeholder)
      return bind(value, arg) || refuse(pattern, arg);
    if (value && arg.isValue() && arg.value()->index() == value->index())
      return matches(*value->node(), *arg.value()->node());
    if (pattern.isList() && arg.isList() && pattern.list().size() == arg.list().size())
      return llvm::all_of_zip(pattern.list(), arg.list(),
                              [&](const Arg &p, const Arg &a) { return matches(p, a); });
    auto number = pattern.asNumber();
    const bool isEqual = number ? arg.asNumber() == number : pattern == arg; // 2 matches 2.0.
    return isEqual || refuse(pattern, arg);
  }

  bool bind(const Value *input, const Arg &arg) {
    if (input->isTensor() && !(arg.isValue() && allows(input->type(), arg.value()->type())))
      return false;
    return bound_.try_emplace(input, arg).first->second == arg;
  }

  static std::string differs(const std::string &pattern, const std::string &found) {
    return "the pattern has " + pattern + ", and the graph " + found;
  }
  bool refuse(const Arg &pattern, const Arg &arg) const {
    return rewriter_.notifyMatchFailure(root_, [&] {
      const Node *call = pattern.isValue() ? pattern.value()->node() : nullptr;
      const bool isInput = !call || call->kind() == ir::NodeKind::Placeholder;
      return differs(isInput ? ir::argText(pattern) : ir::toString(*call), ir::argText(arg));
    });
  }

  const Node &root_;
  const PatternRewriter &rewriter_;
  llvm::DenseMap<const Value *, Arg> bound_; ///< Looked up, never iterated.
};

} // namespace

const Arg &OpMatch::operator[](llvm::StringRef name) const {
  auto it = llvm::find_if(inputs, [&](auto &input) { return input.first == name; });
  CGC_CHECK(it != inputs.end() && "the pattern has no such input");
  return it->second;
}

Result<OpPattern> OpPattern::create(const OpSubstitution &substitution) {
  OpPattern pattern(substitution);
  auto context = [&](const char *what) {
    return std::string(what) + " of substitution '" + substitution.name + "'";
  };
  CGC_ASSIGN_OR_RETURN(pattern.pattern_, parseGraph(substitution.pattern, context("the pattern")));
  const ir::Graph &graph = *pattern.pattern_->graphs()[0];
  Node *root = graph.outputs().front().value()->node();
  if (root->kind() != ir::NodeKind::CallFunction || root->numResults() != 1 || !isConnected(graph))
    return Status(Code::Failed, context("the pattern") +
                                    ": expected every call to lead to the output, and that to be "
                                    "the only result of a call");
  for (const Value *input : graph.inputs())
    if (!input->hasUsers())
      return Status(Code::Failed,
                    context("the pattern") + ": nothing reads input '%" + input->name() + "'");
  if (substitution.replacement.empty() == !substitution.replace)
    return Status(Code::Failed, "substitution '" + substitution.name +
                                    "' needs a replacement: a text or a function");
  if (substitution.replace)
    return pattern;
  CGC_ASSIGN_OR_RETURN(pattern.replacement_,
                       parseGraph(substitution.replacement, context("the replacement")));
  for (const Value *input : pattern.replacement_->graphs()[0]->inputs())
    if (llvm::none_of(graph.inputs(), [&](Value *i) { return i->name() == input->name(); }))
      return Status(Code::Failed, context("the replacement") + ": the pattern has no input '%" +
                                      input->name() + "'");
  return pattern;
}

std::optional<OpMatch> OpPattern::match(Node &root, const PatternRewriter &rewriter) const {
  const ir::Graph &graph = *pattern_->graphs()[0];
  if (!root.is(graph.outputs().front().value()->node()->op()))
    return std::nullopt;
  Matcher matcher(root, rewriter);
  if (!matcher.matches(*graph.outputs().front().value()->node(), root))
    return std::nullopt;
  OpMatch match{root, {}};
  for (const Value *input : graph.inputs())
    match.inputs.emplace_back(input->name(), matcher.bound(input));
  return match;
}

Result<Value *> OpPattern::build(const OpMatch &match, ir::GraphRewriter &rewriter) const {
  if (!replacement_)
    return substitution_->replace(match, rewriter);
  llvm::DenseMap<const Value *, Arg> map; // Looked up, never iterated.
  auto mapped = [&](Arg arg) {
    arg.mapValues([&](Value *value) { return map.find(value)->second; });
    return arg;
  };
  for (const Node &node : *replacement_->graphs()[0]) {
    if (node.kind() == ir::NodeKind::Placeholder) {
      map[node.result()] = match[node.result()->name()];
    } else if (node.kind() == ir::NodeKind::CallFunction) {
      std::vector<Arg> args;
      for (const Arg &arg : node.args())
        args.push_back(mapped(arg));
      Result<Node *> copy = rewriter.tryCreate(node.op(), std::move(args), match.root, &match.root);
      if (!copy)
        return Status(Code::Failed, "the replacement's " + ir::opName(node.op()).str() +
                                        " refuses: " + copy.status().message());
      if ((*copy)->numResults() != node.numResults())
        return Status(Code::Failed, "the replacement's " + ir::opName(node.op()).str() + " has " +
                                        std::to_string((*copy)->numResults()) + " results");
      for (unsigned i = 0; i < node.numResults(); ++i)
        map[node.result(i)] = Arg((*copy)->result(i));
    } else {
      Arg result = mapped(node.args().front());
      if (!result.isValue())
        return Status(Code::Failed, "the replacement is the constant " + ir::argText(result));
      return result.value();
    }
  }
  llvm_unreachable("a graph ends in its output");
}

} // namespace cgc::passes

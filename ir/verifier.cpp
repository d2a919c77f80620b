// Verifier: the invariants of graph.h, schemas and result types. docs/ir.md lists them.
#include "ir/verifier.h"

#include "ir/op_def.h"
#include "ir/text/text.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace cgc::ir {
namespace {

std::string counted(size_t count, llvm::StringRef noun) {
  return std::to_string(count) + " " + noun.str() + (count == 1 ? "" : "s");
}

/// Returns true if the types differ at most in the device: parameters have their bytes on the host.
bool equalExceptDevice(const TensorType &a, const TensorType &b) {
  return a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides;
}

class GraphVerifier {
public:
  GraphVerifier(const Graph &graph, Diagnostics &diagnostics)
      : graph_(graph), diagnostics_(diagnostics) {}

  void run();

private:
  void error(const Node &node, std::string message) {
    diagnostics_.error(node, std::move(message));
  }
  void errorAtGraph(std::string message) { diagnostics_.error(graph_, std::move(message)); }
  void checkInputs(const Node &node);
  void checkInput(const Node &node, const Arg &arg);
  void checkResultNames(const Node &node);
  void checkPlace(const Node &node, bool isLast);
  void checkGetAttr(const Node &node);
  void checkCallModule(const Node &node);
  void checkCall(const Node &node);
  void checkResultTypes(const Node &node);
  void checkOutput(const Node &node);
  void checkStateWrites(const Node &node);
  void checkBranch(const Node &node);
  void checkUsers();

  /// A branch whose prim.end_if has not come yet, and the values that its sides define.
  struct Branch {
    const Node *begin;
    bool inElse = false;
    std::vector<const Value *> sides[2];
  };

  const Graph &graph_;
  Diagnostics &diagnostics_;
  /// Values defined by earlier nodes, except in sides of branches that have ended; never iterated.
  llvm::DenseSet<const Value *> defined_;
  std::vector<Branch> branches_; ///< The innermost branch is last.
  llvm::StringSet<> names_;      ///< Names of all results so far.
  bool placeholdersEnded_ = false;
  unsigned numOutputs_ = 0;
};

void GraphVerifier::run() {
  for (const Node &node : graph_) {
    checkPlace(node, &node == &*std::prev(graph_.end()));
    if (node.is(OpKind::PrimIf) || node.is(OpKind::PrimElse) || node.is(OpKind::PrimEndIf))
      checkBranch(node);
    else
      checkInputs(node);
    switch (node.kind()) {
    case NodeKind::Placeholder:
      if (node.args().size() > 1 || node.numResults() != 1 ||
          (node.defaultValue() && !node.defaultValue()->isConstant()))
        error(node, "a placeholder has one result, and no argument but a constant default");
      break;
    case NodeKind::GetAttr:
      checkGetAttr(node);
      break;
    case NodeKind::CallFunction:
      checkCall(node);
      break;
    case NodeKind::CallModule:
      checkCallModule(node);
      break;
    case NodeKind::Output:
      checkOutput(node);
      break;
    }
    checkResultNames(node);
    for (const Value &result : node.results()) {
      defined_.insert(&result);
      if (!branches_.empty())
        branches_.back().sides[branches_.back().inElse].push_back(&result);
    }
  }
  for (const Branch &branch : branches_)
    error(*branch.begin, "this branch has no prim.end_if");
  if (numOutputs_ == 0)
    errorAtGraph("the graph has no output node");
  checkUsers();
}

void GraphVerifier::checkUsers() {
  llvm::DenseMap<const Value *, llvm::SmallVector<Node *, 2>> users; // Looked up, never iterated.
  for (const Node &node : graph_)
    node.forEachInput([&](const Value *value) {
      auto &found = users[value];
      if (found.empty() || found.back() != &node)
        found.push_back(const_cast<Node *>(&node));
    });
  for (const Node &node : graph_)
    for (const Value &result : node.results()) {
      const auto found = users.find(&result);
      const bool isRight = found == users.end() ? !result.hasUsers()
                                                : result.users() == llvm::ArrayRef(found->second);
      if (!isRight)
        error(node,
              "'%" + result.name() + "' lists other users than the arguments of the nodes do");
    }
}

void GraphVerifier::checkPlace(const Node &node, bool isLast) {
  if (node.graph() != &graph_)
    error(node, "the node says that it belongs to another graph");
  if (node.kind() != NodeKind::Placeholder)
    placeholdersEnded_ = true;
  else if (placeholdersEnded_)
    error(node, "placeholders come before all other nodes");
  if (node.kind() != NodeKind::Output)
    return;
  if (++numOutputs_ > 1)
    error(node, "a graph has one output node, this is another");
  else if (!isLast)
    error(node, "the output node comes last");
}

void GraphVerifier::checkInputs(const Node &node) {
  for (const Arg &arg : node.args())
    checkInput(node, arg);
}

void GraphVerifier::checkInput(const Node &node, const Arg &arg) {
  // Dereferences only values that are known to be alive.
  arg.forEachValue([&](const Value *value) {
    if (defined_.contains(value))
      return;
    bool isBefore = true;
    for (const Node &other : graph_) {
      isBefore &= &other != &node;
      for (const Value &result : other.results())
        if (&result == value) {
          error(node, "uses '%" + value->name() + "' " +
                          (isBefore ? "of a side of a branch outside that side"
                                    : "before it is defined"));
          return;
        }
    }
    error(node, "uses a value that is not in this graph");
  });
}

void GraphVerifier::checkBranch(const Node &node) {
  if (node.is(OpKind::PrimIf)) {
    checkInputs(node);
    branches_.push_back({&node, false, {}});
    if (node.numResults() != 0)
      error(node, "prim.if has no results");
    return;
  }
  const bool isElse = node.is(OpKind::PrimElse);
  if (branches_.empty() || branches_.back().inElse == isElse) {
    error(node, isElse ? "there is no prim.if that this belongs to"
                       : "there is no prim.else that this belongs to");
    return;
  }
  Branch &branch = branches_.back();
  if (isElse) {
    branch.inElse = true;
    for (const Value *value : branch.sides[0])
      defined_.erase(value);
    if (node.numResults() != 0)
      error(node, "prim.else has no results");
    return;
  }
  const Branch ended = std::move(branch);
  branches_.pop_back();
  for (unsigned side : {1, 0}) {
    if (side < node.args().size()) {
      const Arg &results = node.args()[side];
      checkInput(node, results);
      if (results.isList() && results.list().size() != node.numResults())
        error(node, "each side gives one element for each result");
    }
    for (const Value *value : ended.sides[side])
      defined_.erase(value);
    if (side == 1)
      for (const Value *value : ended.sides[0])
        defined_.insert(value);
  }
}

void GraphVerifier::checkResultNames(const Node &node) {
  for (const Value &result : node.results()) {
    if (result.name().empty())
      error(node, "a result has no name");
    else if (!names_.insert(result.name()).second)
      error(node, "another value is named '%" + result.name() + "' too");
  }
}

void GraphVerifier::checkGetAttr(const Node &node) {
  if (!node.args().empty() || node.numResults() != 1) {
    error(node, "get_attr has no arguments and one result");
    return;
  }
  if (!graph_.owner())
    return;
  const Parameter *parameter = graph_.owner()->findParameter(node.target());
  const Type &type = node.result()->type();
  if (!parameter)
    error(node, "module '" + graph_.owner()->name() + "' has no parameter '" + node.target() + "'");
  else if (type.isTensor() && !equalExceptDevice(type.tensor(), parameter->type))
    error(node, "the parameter's type is " + toString(parameter->type));
}

void GraphVerifier::checkCallModule(const Node &node) {
  if (!graph_.owner())
    return;
  auto [module, name] = graph_.owner()->resolve(node.target());
  const Graph *callee = module ? module->findGraph(name) : nullptr;
  if (!callee) {
    error(node,
          "module '" + graph_.owner()->name() + "' has no method '" + node.target() + "' below it");
    return;
  }
  size_t numInputs = callee->inputs().size();
  if (node.args().size() != numInputs)
    error(node, "the method takes " + counted(numInputs, "input") + ", the call has " +
                    counted(node.args().size(), "argument"));
  const Node *output = callee->output(); // A missing output is an error of the callee.
  if (output && node.numResults() != callee->outputs().size())
    error(node, "the method has " + counted(callee->outputs().size(), "output") +
                    ", the call has " + counted(node.numResults(), "result"));
}

void GraphVerifier::checkCall(const Node &node) {
  if (node.is(OpKind::Fallback) && node.target().empty())
    error(node, "aten.fallback names no ATen schema");
  const Schema &schema = opSchema(node.op());
  Status status = checkArgs(schema, node.args());
  if (!status.isOk()) {
    error(node, status.message());
    return;
  }
  if (!schema.listResult && node.numResults() != schema.numResults) {
    error(node, opName(node.op()).str() + " has " + counted(schema.numResults, "result") +
                    ", this call " + std::to_string(node.numResults()));
    return;
  }
  checkResultTypes(node);
}

void GraphVerifier::checkResultTypes(const Node &node) {
  bool typed = node.numResults() > 0;
  node.forEachInput(
      [&](const Value *value) { typed &= defined_.contains(value) && value->isTensor(); });
  for (const Value &result : node.results())
    typed &= result.isTensor();
  if (!typed)
    return;
  if (node.isInPlace()) {
    const Arg &overwritten = aliasedArg(node);
    if (overwritten.isValue() && node.result()->type() != overwritten.value()->type())
      error(node, "the result of an in-place op has the type of its first argument, " +
                      toString(overwritten.value()->type()));
    return;
  }
  if (!opDef(node.op()).infer)
    return;
  auto inferred = inferResults(node.op(), node.args(), node.result()->tensor().device);
  if (!inferred) {
    error(node, inferred.status().message());
    return;
  }
  if (inferred->size() != node.numResults()) {
    error(node, "the arguments give " + counted(inferred->size(), "result") + ", the call has " +
                    std::to_string(node.numResults()));
    return;
  }
  for (const Value &result : node.results())
    if (const TensorType &expected = (*inferred)[result.index()].type; result.tensor() != expected)
      error(node, "the type of '%" + result.name() + "' should be " + toString(expected));
}

void GraphVerifier::checkOutput(const Node &node) {
  if (node.numResults() != 0)
    error(node, "the output node has no results");
  const auto &names = graph_.outputNames();
  // Not graph_.outputs(): `node` is not the last node of every graph that is wrong.
  const size_t outputs = node.args().size() - graph_.stateWrites().size();
  if (!names.empty() && names.size() != outputs)
    error(node, "the graph has " + counted(names.size(), "output name") + " for " +
                    counted(outputs, "output"));
  llvm::StringSet<> seen;
  for (const std::string &name : names)
    if (!seen.insert(name).second)
      error(node, "two outputs are named '" + name + "'");
  checkStateWrites(node);
}

void GraphVerifier::checkStateWrites(const Node &node) {
  llvm::StringSet<> written;
  const auto values = llvm::ArrayRef(node.args()).take_back(graph_.stateWrites().size());
  for (const auto &[path, value] : llvm::zip_equal(graph_.stateWrites(), values)) {
    if (!written.insert(path).second)
      error(node, "state '" + path + "' is written twice");
    if (!graph_.owner())
      continue;
    const Parameter *state = graph_.owner()->findParameter(path);
    if (!state || state->kind != Parameter::Kind::State)
      error(node, "module '" + graph_.owner()->name() + "' has no state '" + path + "'");
    else if (!value.isValue())
      error(node, "the new value of state '" + path + "' is no value of the graph");
    else if (const Type &type = value.value()->type();
             type.isTensor() &&
             (type.tensor().dtype != state->type.dtype || type.tensor().sizes != state->type.sizes))
      error(node, "state '" + path + "' is " + toString(state->type) + ", its new value " +
                      toString(type));
  }
}

/// Reports methods of `module` that call themselves, since `inline` would not terminate. Only calls
/// within one module can form a cycle: all others go down the module tree.
class RecursionCheck {
public:
  RecursionCheck(const Module &module, Diagnostics &diagnostics)
      : module_(module), diagnostics_(diagnostics) {}

  void run() {
    for (const auto &graph : module_.graphs())
      visit(*graph);
  }

private:
  enum class State { Unseen, Open, Done };

  void visit(const Graph &graph) {
    states_[graph.name()] = State::Open;
    for (const Node &node : graph) {
      if (node.kind() != NodeKind::CallModule)
        continue;
      const Graph *callee = module_.findGraph(node.target());
      if (!callee)
        continue;
      State state = states_.lookup(callee->name());
      if (state == State::Open)
        diagnostics_.error(node, "the method calls itself; cgc has no recursion");
      else if (state == State::Unseen)
        visit(*callee);
    }
    states_[graph.name()] = State::Done;
  }

  const Module &module_;
  Diagnostics &diagnostics_;
  llvm::StringMap<State> states_;
};

void verifyModule(const Module &module, Diagnostics &diagnostics) {
  for (const auto &graph : module.graphs())
    GraphVerifier(*graph, diagnostics).run();
  RecursionCheck(module, diagnostics).run();
  for (const auto &submodule : module.submodules())
    verifyModule(*submodule, diagnostics);
}

} // namespace

bool verify(const Graph &graph, Diagnostics &diagnostics) {
  size_t before = diagnostics.errors().size();
  GraphVerifier(graph, diagnostics).run();
  return diagnostics.errors().size() == before;
}

bool verify(const Module &module, Diagnostics &diagnostics) {
  size_t before = diagnostics.errors().size();
  verifyModule(module, diagnostics);
  return diagnostics.errors().size() == before;
}

} // namespace cgc::ir

// InlinePass: rebuilds each graph of the root with the callees' bodies in place of the calls.
#include "passes/specialize/inline.h"

#include "ir/op_def.h"
#include "ir/text/text.h"
#include "passes/manager/registered_pass.h"
#include "passes/specialize/branches.h"
#include "passes/specialize/numbers_of_tensors.h"
#include "runtime/base/check.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace cgc::passes {
namespace {

using ir::OpKind;
using ValueMap = llvm::DenseMap<const ir::Value *, ir::Arg>; // Looked up, never iterated.

std::string join(const std::string &prefix, llvm::StringRef path) {
  return prefix.empty() ? path.str() : prefix + "." + path.str();
}

/// Bounds the stack that the pass takes.
constexpr size_t kMaxCallDepth = 1000;

class Inliner {
public:
  Inliner(const ir::Module &root, ir::Graph &target) : root_(root), target_(target) {}

  /// Copies the nodes of `source`, a graph of `root_` whose inputs are bound in `map`. Returns the
  /// outputs of the copy.
  Result<std::vector<ir::Arg>> emit(const ir::Graph &source, ValueMap &map) {
    if (llvm::is_contained(stack_, &source))
      return Status(Code::Failed, "graph @" + source.name() + " of module '" +
                                      source.owner()->path() + "' calls itself");
    if (stack_.size() == kMaxCallDepth)
      return Status(Code::Unsupported,
                    "graph @" + source.name() + " of module '" + source.owner()->path() +
                        "': methods call one another more than " + std::to_string(kMaxCallDepth) +
                        " deep; call fewer methods from one another");
    stack_.push_back(&source);
    std::string prefix = source.owner()->path();
    BranchStack branches;
    for (const ir::Node &node : source) {
      if (node.is(OpKind::PrimElse)) {
        branches.enterElse();
        if (!branches.isUndecided() || branches.isSkipped())
          continue;
      } else if (node.is(OpKind::PrimEndIf)) {
        const std::optional<bool> taken = branches.leave();
        if (branches.isSkipped())
          continue;
        if (taken) {
          ir::Arg side = node.arg(*taken ? "then" : "else");
          mapArg(side, map);
          for (unsigned i = 0; i < node.numResults(); ++i)
            map[node.result(i)] = side.list()[i];
          continue;
        }
      } else if (branches.isSkipped()) {
        if (node.is(OpKind::PrimIf))
          branches.enter(std::nullopt);
        continue;
      }
      std::vector<ir::Arg> args = node.args().vec();
      for (ir::Arg &arg : args)
        mapArg(arg, map);
      switch (node.kind()) {
      case ir::NodeKind::Placeholder:
        CGC_CHECK(map.count(node.result()) && "inputs are bound before");
        break;
      case ir::NodeKind::GetAttr:
        bind(node,
             *target_.getAttr(join(prefix, node.target()), node.result()->type(),
                              locOf(node, prefix)),
             map);
        break;
      case ir::NodeKind::CallFunction: {
        if (node.is(OpKind::PrimIf)) {
          const bool *taken = args.front().getIf<bool>();
          branches.enter(taken ? std::optional(*taken) : std::nullopt);
          if (taken)
            break;
        }
        if (evaluate(node, args, map))
          break;
        forEachNumberOfTensor(node.op(), args, [&](ir::Arg &arg) {
          const ir::Loc loc = locOf(node, prefix);
          arg = ir::Arg(target_.call(OpKind::PrimNumToTensor, {arg}, 1, loc)->result());
        });
        // A callee that raises an exception gives its caller none.
        if (Status status = ir::checkArgs(ir::opSchema(node.op()), args); !status.isOk()) {
          ir::Node *refused = target_.call(
              OpKind::PrimRefused,
              {ir::Arg(ir::opName(node.op()).str() + ": " + status.message()), ir::Arg("")},
              node.numResults(), locOf(node, prefix));
          bind(node, *refused, map);
          break;
        }
        ir::Node *copy =
            target_.call(node.op(), std::move(args), node.numResults(), locOf(node, prefix));
        copy->setTarget(node.target());
        copy->setInPlace(node.isInPlace());
        bind(node, *copy, map);
        break;
      }
      case ir::NodeKind::CallModule: {
        CGC_ASSIGN_OR_RETURN(auto results, call(node, join(prefix, node.target()), args));
        for (unsigned i = 0; i < node.numResults(); ++i)
          map[node.result(i)] = results[i];
        break;
      }
      case ir::NodeKind::Output:
        stack_.pop_back();
        return args;
      }
    }
    return Status(Code::Failed, "graph @" + source.name() + " has no output");
  }

private:
  static void mapArg(ir::Arg &arg, const ValueMap &map) {
    arg.mapValues([&](ir::Value *value) { return map.find(value)->second; });
  }

  /// Binds the results of a node that can be evaluated from the caller's constants.
  static bool evaluate(const ir::Node &node, llvm::ArrayRef<ir::Arg> args, ValueMap &map) {
    const std::optional<ir::Arg> value = ir::evaluateEarly(node.op(), args);
    if (!value)
      return false;
    if (!node.is(OpKind::PrimUnpack)) {
      map[node.result()] = *value;
      return true;
    }
    if (value->list().size() != node.numResults())
      return false; // Compiling the graph reports the error.
    for (unsigned i = 0; i < node.numResults(); ++i)
      map[node.result(i)] = value->list()[i];
    return true;
  }

  Result<std::vector<ir::Arg>> call(const ir::Node &node, const std::string &path,
                                    llvm::ArrayRef<ir::Arg> args) {
    auto [module, method] = root_.resolve(path);
    const ir::Graph *callee = module ? module->findGraph(method) : nullptr;
    if (!callee)
      return Status(Code::Failed,
                    "there is no graph '" + path + "' to inline at " + ir::toString(node));
    std::vector<ir::Value *> inputs = callee->inputs();
    if (inputs.size() != args.size())
      return Status(Code::Failed, "'" + path + "' takes " + std::to_string(inputs.size()) +
                                      " inputs and is called with " + std::to_string(args.size()) +
                                      " at " + ir::toString(node));
    ValueMap map;
    for (unsigned i = 0; i < args.size(); ++i)
      map[inputs[i]] = args[i];
    CGC_ASSIGN_OR_RETURN(auto results, emit(*callee, map));
    if (results.size() != node.numResults())
      return Status(Code::Failed, "'" + path + "' yields " + std::to_string(results.size()) +
                                      " results and is used for " +
                                      std::to_string(node.numResults()) + " at " +
                                      ir::toString(node));
    return results;
  }

  /// Copies the types and names of the results.
  void bind(const ir::Node &from, ir::Node &to, ValueMap &map) {
    for (unsigned i = 0; i < from.numResults(); ++i) {
      to.result(i)->setType(from.result(i)->type());
      // A number has no meaning outside its own graph.
      if (!llvm::all_of(from.result(i)->name(), llvm::isDigit))
        target_.rename(to.result(i), from.result(i)->name());
      map[from.result(i)] = ir::Arg(to.result(i));
    }
  }

  static ir::Loc locOf(const ir::Node &node, const std::string &module) {
    ir::Loc loc = node.loc();
    if (loc.module.empty())
      loc.module = module;
    return loc;
  }

  const ir::Module &root_;
  ir::Graph &target_;
  std::vector<const ir::Graph *> stack_;
};

Result<std::unique_ptr<ir::Graph>> flatten(ir::Module &root, const ir::Graph &source) {
  auto flat = std::make_unique<ir::Graph>(source.name());
  flat->setOwner(&root);
  ValueMap map;
  for (ir::Value *input : source.inputs()) {
    ir::Node *copy = flat->placeholder(input->name(), input->type(), input->node()->loc());
    copy->setArgs(input->node()->args().vec());
    map[input] = copy->result();
  }
  CGC_ASSIGN_OR_RETURN(auto results, Inliner(root, *flat).emit(source, map));
  flat->createOutput(std::move(results), source.output()->loc());
  flat->setOutputNames(source.outputNames());
  return flat;
}

} // namespace

Result<Changed> InlinePass::run(ir::Module &root, PassContext &) const {
  bool anyCall = llvm::any_of(root.graphs(), [](auto &graph) {
    return llvm::any_of(
        *graph, [](const ir::Node &node) { return node.kind() == ir::NodeKind::CallModule; });
  });
  if (!anyCall)
    return Changed::No;
  std::vector<std::unique_ptr<ir::Graph>> flat;
  for (auto &graph : root.graphs()) {
    CGC_ASSIGN_OR_RETURN(auto one, flatten(root, *graph));
    flat.push_back(std::move(one));
  }
  for (auto &graph : flat) { // All or none: a method may call another method of the root.
    root.removeGraph(graph->name());
    root.addGraph(std::move(graph));
  }
  return Changed::Yes;
}

CGC_DEFINE_PASS(InlinePass)

} // namespace cgc::passes

// SpecializePass: one walk in execution order. What is known on the host is kept beside the graph
// and put into the arguments of later nodes; tensor ops get their types from their rules.
#include "passes/specialize.h"

#include "ir/op_def.h"
#include "ir/text.h"
#include "ir/uses.h"
#include "passes/branches.h"
#include "passes/dce.h"
#include "passes/in_place.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// A dict on the host is a list of [key, value] pairs.
bool isDict(const Arg &arg) {
  return arg.isList() && !arg.list().empty() && llvm::all_of(arg.list(), [](const Arg &pair) {
           return pair.isList() && pair.list().size() == 2 && pair.list()[0].is<std::string>();
         });
}

bool isNumber(const Arg &arg) {
  return arg.is<int64_t>() || arg.is<double>() || arg.is<bool>();
}

/// What the model's author calls an op that reads one element of a tensor; empty for other ops.
llvm::StringRef hostRead(const Node &node) {
  switch (node.op()) {
  case OpKind::PrimInt:
    return "int() of a tensor";
  case OpKind::PrimFloat:
    return "float() of a tensor";
  case OpKind::PrimBool:
    return "bool() of a tensor";
  case OpKind::PrimItem:
    return "item()";
  default:
    return "";
  }
}

/// Whether the result is bool, whatever the operands are.
bool isComparison(const Node &node) {
  return node.is(OpKind::Eq) || node.is(OpKind::Ne) || node.is(OpKind::Lt) || node.is(OpKind::Le) ||
         node.is(OpKind::Gt) || node.is(OpKind::Ge);
}

/// Why a rule refuses `args`, where that is more than a type that does not fit.
ir::Cause causeOfRefusal(const Node &node, llvm::ArrayRef<Arg> args) {
  auto isMask = [](const Arg &arg) {
    if (!arg.isValue())
      return false;
    if (!arg.value()->isTensor())
      return isComparison(*arg.value()->node());
    const DType dtype = arg.value()->tensor().dtype;
    return dtype == DType::Bool || dtype == DType::U8;
  };
  auto isTrue = [&](llvm::StringRef name) {
    return args[*ir::opSchema(node.op()).find(name)] == Arg(true);
  };
  if (node.is(OpKind::Index) && args[1].isList() && llvm::any_of(args[1].list(), isMask))
    return ir::Cause::DataShape;
  if (node.is(OpKind::Dropout) && isTrue("train"))
    return ir::Cause::Random;
  if (node.is(OpKind::BatchNorm) && isTrue("training"))
    return ir::Cause::MutatesState;
  return ir::Cause::None;
}

class Specializer {
public:
  /// With `untyped`, inputs may have no types, and what depends on them has none.
  Specializer(ir::Graph &graph, DeviceKind target, ir::Diagnostics &diagnostics,
              bool untyped = false)
      : graph_(graph), target_(target), diagnostics_(diagnostics), untyped_(untyped) {}

  /// Errors go to the diagnostics. Returns whether anything changed.
  bool run() {
    findOriginals();
    for (Node &node : llvm::make_early_inc_range(graph_)) {
      visit(node);
      if (originals_.contains(&node))
        evaluated(node);
    }
    if (!untyped_ && !diagnostics_.hasErrors())
      for (Node *node : llvm::reverse(evaluated_))
        graph_.erase(node);
    return changed_;
  }

  /// The failure is that of a substitution, not of the model.
  bool isSubstitutionAtFault() const { return substitutionAtFault_; }

private:
  /// What only stands beside a substitution, to be compared with it. A branch does, with all that
  /// is in it, if its results do.
  void findOriginals() {
    const ir::UseMap uses(graph_);
    llvm::SmallVector<bool> branches; ///< Around the node: whether they are originals.
    for (Node &node : llvm::reverse(graph_)) {
      auto isOriginal = [&](const Node *user, const Value &result) {
        return originals_.contains(user) || (user->is(OpKind::PrimSubstituted) &&
                                             user->arg(0) != Arg(const_cast<Value *>(&result)));
      };
      bool used = false, byOthers = node.kind() == ir::NodeKind::Placeholder;
      for (const Value &result : node.results())
        for (const Node *user : uses.users(&result)) {
          used = true;
          byOthers |= !isOriginal(user, result);
        }
      if ((used && !byOthers) || (!branches.empty() && branches.back()))
        originals_.insert(&node);
      if (node.is(OpKind::PrimEndIf))
        branches.push_back(originals_.contains(&node));
      else if (node.is(OpKind::PrimIf))
        branches.pop_back();
    }
  }

  void visit(Node &node) {
    if (node.is(OpKind::PrimIf))
      return visitIf(node);
    if (node.is(OpKind::PrimElse)) {
      branches_.enterElse();
      return evaluated(node);
    }
    if (node.is(OpKind::PrimEndIf))
      return visitEndIf(node);
    if (branches_.isSkipped())
      return evaluated(node);
    switch (node.kind()) {
    case ir::NodeKind::Placeholder:
      visitPlaceholder(node);
      break;
    case ir::NodeKind::GetAttr:
      visitGetAttr(node);
      break;
    case ir::NodeKind::CallModule:
      error(node, "a call of a module is left; run the pass 'inline' first");
      break;
    case ir::NodeKind::CallFunction:
      visitCall(node);
      break;
    case ir::NodeKind::Output:
      visitOutput(node);
      break;
    }
  }

  void visitPlaceholder(Node &node) {
    if (!node.result()->type().isDynamic())
      return;
    const bool hasDefault = !node.args().empty();
    if (hasDefault && !(untyped_ && node.arg(0).isNone())) {
      know(node, 0, node.arg(0));
      evaluated(node);
    } else if (untyped_) {
      tensors_.insert(node.result());
    } else {
      error(node, "input '" + node.result()->name() +
                      "' has no type; in IR text the graph's header gives it, as in %" +
                      node.result()->name() + ": f32[1,3]");
    }
  }

  /// Of a branch whose condition is known, one side vanishes. Both sides of any other are walked
  /// through, so that all that is in the way is reported.
  void visitIf(Node &node) {
    evaluated(node);
    if (branches_.isSkipped())
      return branches_.enter(std::nullopt);
    Arg condition = node.arg(0);
    resolve(condition);
    if (const bool *taken = condition.getIf<bool>())
      return branches_.enter(*taken);
    const bool byData =
        isTensor(condition) || (condition.isValue() && decidesOnly(*condition.value()->node()));
    if (!condition.isValue())
      error(node, "the condition of this branch is " + ir::argText(condition) +
                      ", which is neither true nor false");
    else if (byData)
      reportCause(node, "data-dependent control flow", ir::Cause::DataFlow);
    branches_.enter(std::nullopt,
                    /*mayBeSkipped=*/(untyped_ && !byData) || originals_.contains(&node));
  }

  void visitEndIf(Node &node) {
    const std::optional<bool> taken = branches_.leave();
    evaluated(node);
    if (branches_.isSkipped() || !taken)
      return;
    Arg side = node.arg(*taken ? 0 : 1);
    resolve(side);
    for (unsigned i = 0; i < node.numResults(); ++i)
      know(node, i, side.list()[i]);
  }

  /// Whether `node` turns a tensor into a bool that nothing but branches read: then these are
  /// reported in its place.
  bool decidesOnly(const Node &node) {
    if (!node.is(OpKind::PrimBool))
      return false;
    Arg operand = node.arg(0);
    resolve(operand);
    return isTensor(operand) && llvm::all_of(graph_, [&](const Node &user) {
             bool reads = false;
             user.forEachInput([&](const Value *value) { reads |= value == node.result(); });
             return !reads || user.is(OpKind::PrimIf);
           });
  }

  void visitGetAttr(Node &node) {
    const ir::Parameter *parameter =
        graph_.owner() ? graph_.owner()->findParameter(node.target()) : nullptr;
    if (!parameter) {
      error(node, "the module has no parameter '" + node.target() + "'");
      return;
    }
    ir::TensorType type = parameter->type;
    type.device = target_;
    setType(node.result(), std::move(type));
  }

  void visitCall(Node &node) {
    std::vector<Arg> args = node.args().vec();
    for (Arg &arg : args)
      resolve(arg);
    if (node.op() == OpKind::PrimSubstituted) {
      if (dependsOnError(args[0]))
        return;
      if (dependsOnError(args[1])) // Nothing to compare with: cgc cannot compile the original.
        args[1] = args[0];
      return evaluate(node, args);
    }
    if (node.op() == OpKind::Fallback) {
      // The node, printed below, has the whole schema.
      const llvm::StringRef op = llvm::StringRef(node.target()).split('(').first;
      const ir::Cause cause = ir::causeOf(op.split('.').first);
      error(node, ir::explain("cgc cannot compile " + op.str(), cause), cause);
      return;
    }
    if (node.op() == OpKind::PrimRefused) {
      report(node, node.arg("reason").as<std::string>(),
             ir::parseCause(node.arg("cause").as<std::string>()));
      return;
    }
    if (node.op() == OpKind::PrimRaise) {
      // Of a branch that nothing decides, one side may be an assertion that holds.
      if (branches_.allDecided())
        report(node,
               "the model raises an exception for these inputs: " +
                   (args[0].is<std::string>() ? args[0].as<std::string>() : ir::argText(args[0])));
      return evaluated(node);
    }
    rememberTensors(node, args);
    // What it depends on has been reported, or cannot be known without types.
    if (llvm::any_of(args, [](const Arg &arg) { return dependsOnError(arg); }))
      return judgeUntyped(node, args);
    bool onHost = ir::hasTrait(node.op(), ir::kHost);
    bool allConstant = llvm::all_of(args, [](const Arg &arg) { return arg.isConstant(); });
    if (onHost || (allConstant && ir::opDef(node.op()).evaluate && takesTensor(node.op())))
      evaluate(node, args);
    else
      infer(node, std::move(args));
  }

  /// Evaluates a host op, or arithmetic on numbers.
  void evaluate(Node &node, llvm::ArrayRef<Arg> args) {
    if (!args.empty() && isTensor(args[0]) && reportHostRead(node))
      return;
    auto *evaluate = ir::opDef(node.op()).evaluate;
    Result<Arg> value = evaluate ? evaluate(args)
                                 : Status(Code::Unsupported, "cgc cannot evaluate this op at "
                                                             "compile time");
    if (!value) {
      error(node, value.status().message());
      return;
    }
    if (node.numResults() == 1 && node.op() != OpKind::PrimUnpack) {
      know(node, 0, *value);
      return evaluated(node);
    }
    size_t count = value->isList() ? value->list().size() : 0;
    if (count != node.numResults()) {
      error(node, "a list of " + std::to_string(count) + " elements is unpacked into " +
                      std::to_string(node.numResults()));
      return;
    }
    for (unsigned i = 0; i < count; ++i)
      know(node, i, value->list()[i]);
    evaluated(node);
  }

  /// Whether `node` reads an element of a tensor; then it is reported, here or by the branch that
  /// it decides.
  bool reportHostRead(Node &node) {
    const llvm::StringRef what = hostRead(node);
    if (!what.empty() && !decidesOnly(node))
      reportCause(node, what, ir::Cause::HostRead);
    return !what.empty();
  }

  /// What is wrong with a call whatever the types of its arguments are.
  void judgeUntyped(Node &node, llvm::ArrayRef<Arg> args) {
    if (node.is(OpKind::PrimIs)) // A tensor that is given is not none.
      for (int side : {0, 1})
        if (isTensor(args[side]) && args[1 - side].isNone())
          know(node, 0, Arg(false));
    if (!args.empty() && isTensor(args[0])) {
      reportHostRead(node);
      if (const ir::NodeKind from =
              args[0].isValue() ? args[0].value()->node()->kind() : ir::NodeKind::CallFunction;
          node.isInPlace() && from == ir::NodeKind::Placeholder)
        error(node, "in-place op: it overwrites the input '" + args[0].value()->name() + "'",
              ir::Cause::MutatesInput);
    }
    if (const ir::Cause cause = causeOfRefusal(node, args); cause != ir::Cause::None)
      reportCause(node, "cgc cannot compile " + ir::opName(node.op()).str(), cause);
  }

  /// Whether `arg` is surely a tensor. With types, all values are that.
  bool isTensor(const Arg &arg) const {
    return arg.isValue() && (arg.value()->isTensor() || tensors_.contains(arg.value()));
  }
  void rememberTensors(const Node &node, llvm::ArrayRef<Arg> args) {
    if (ir::hasTrait(node.op(), ir::kHost) || ir::opSchema(node.op()).listResult)
      return;
    // Arithmetic of sizes has the ops of tensors.
    const bool mayBeNumber = ir::opDef(node.op()).evaluate != nullptr;
    if (!mayBeNumber || llvm::any_of(args, [&](const Arg &arg) { return isTensor(arg); }))
      for (const Value &result : node.results())
        tensors_.insert(&result);
  }

  /// Types a tensor op.
  void infer(Node &node, std::vector<Arg> args) {
    tensorsFromNumbers(node, args);
    auto inferred = ir::inferResults(node.op(), args, target_);
    if (!inferred) {
      error(node, inferred.status().message(), causeOfRefusal(node, args));
      return;
    }
    // One dynamic result is the list as a whole: it becomes several typed ones.
    if (ir::opSchema(node.op()).listResult && node.numResults() == 1 &&
        node.result()->type().isDynamic()) {
      Node *several = graph_.call(node.op(), std::move(args), inferred->size(), node.loc(), &node);
      Arg::List values;
      for (unsigned i = 0; i < several->numResults(); ++i) {
        several->result(i)->setType((*inferred)[i].type);
        values.emplace_back(several->result(i));
      }
      know(node, 0, Arg(std::move(values)));
      if (originals_.contains(&node))
        evaluated(*several);
      return evaluated(node);
    }
    if (inferred->size() != node.numResults()) {
      error(node, "the op yields " + std::to_string(inferred->size()) +
                      " results and is used for " + std::to_string(node.numResults()));
      return;
    }
    if (node.isInPlace()) {
      const ir::TensorType &self = args[0].value()->tensor();
      const ir::TensorType &result = (*inferred)[0].type;
      if (self.dtype != result.dtype || self.sizes != result.sizes) {
        error(node, "in-place op: the result " + toString(result) +
                        " does not fit into the overwritten " + toString(self));
        return;
      }
      (*inferred)[0].type = self;
    }
    if (args != node.args().vec()) {
      node.setArgs(std::move(args));
      changed_ = true;
    }
    for (unsigned i = 0; i < node.numResults(); ++i)
      setType(node.result(i), (*inferred)[i].type);
    if (node.isInPlace())
      if (Overwritten what = overwritten(node); what.cause != ir::Cause::None)
        error(node, "in-place op: " + what.message, what.cause);
  }

  void visitOutput(Node &node) {
    std::vector<Arg> flat;
    std::vector<std::string> names;
    bool named = false;
    for (unsigned i = 0; i < node.args().size(); ++i) {
      Arg arg = node.arg(i);
      resolve(arg);
      bool many = node.args().size() > 1;
      flatten(arg, many ? std::to_string(i) : "", node, flat, names, named);
    }
    if (flat.empty() && !diagnostics_.hasErrors())
      report(node, "the method returns no tensor, so there is nothing to compile; return what "
                   "it computes");
    if (flat != node.args().vec()) {
      node.setArgs(std::move(flat));
      changed_ = true;
    }
    if (named)
      graph_.setOutputNames(std::move(names));
  }

  void flatten(const Arg &arg, const std::string &name, const Node &node, std::vector<Arg> &flat,
               std::vector<std::string> &names, bool &named) {
    auto nested = [&](const std::string &key) { return name.empty() ? key : name + "." + key; };
    if (isDict(arg)) {
      named = true;
      for (const Arg &pair : arg.list())
        flatten(pair.list()[1], nested(pair.list()[0].as<std::string>()), node, flat, names, named);
    } else if (arg.isList()) {
      for (unsigned i = 0; i < arg.list().size(); ++i)
        flatten(arg.list()[i], nested(std::to_string(i)), node, flat, names, named);
    } else if (arg.isValue()) {
      flat.push_back(arg);
      names.push_back(name);
    } else if (!arg.isNone()) {
      error(node, "the model returns " + ir::argText(arg) +
                      ", which is not a tensor; return tensors only");
    }
  }

  /// Whether nothing is wrong with the compiled model if `node` is: of an original the result stays
  /// dynamic.
  bool isSilent(const Node &node) const {
    return branches_.mayBeSkipped() || originals_.contains(&node);
  }
  void error(const Node &node, std::string message, ir::Cause cause = ir::Cause::None) {
    if (isSilent(node))
      return;
    substitutionAtFault_ |= node.is(OpKind::PrimSubstituted);
    diagnostics_.error(node, std::move(message), cause);
  }
  /// An error whose message says all that the node's text would. If it has a cause, it begins with
  /// what the op is called.
  void report(const Node &node, std::string message, ir::Cause cause = ir::Cause::None) {
    if (isSilent(node))
      return;
    ir::Diagnostic diagnostic;
    if (cause != ir::Cause::None)
      diagnostic.op = llvm::StringRef(message).split(": ").first.str();
    diagnostic.message = std::move(message);
    diagnostic.loc = node.loc();
    diagnostic.cause = cause;
    diagnostics_.error(std::move(diagnostic));
  }
  void reportCause(const Node &node, llvm::StringRef what, ir::Cause cause) {
    report(node, ir::explain(what, cause), cause);
  }

  /// Puts what is known on the host into `arg`, and the target for each device.
  void resolve(Arg &arg) {
    arg.mapValues([&](Value *value) {
      auto it = known_.find(value);
      return it == known_.end() ? Arg(value) : it->second;
    });
    if (arg.is<DeviceKind>())
      arg = Arg(target_);
    if (arg.isList())
      for (Arg &element : arg.list())
        if (element.is<DeviceKind>())
          element = Arg(target_);
  }

  static bool dependsOnError(const Arg &arg) {
    bool depends = false;
    arg.forEachValue([&](Value *value) { depends |= value->type().isDynamic(); });
    return depends;
  }

  static bool takesTensor(OpKind op) {
    return llvm::any_of(ir::opSchema(op).args, [](const ir::SchemaArg &arg) {
      return arg.kind == ir::ArgKind::TensorOrNumber;
    });
  }

  /// A number (tracing made it from a size) where the op takes tensors only becomes a 0-d tensor.
  void tensorsFromNumbers(Node &node, std::vector<Arg> &args) {
    const ir::Schema &schema = ir::opSchema(node.op());
    auto toTensor = [&](Arg &arg) {
      if (!isNumber(arg))
        return;
      Node *full = graph_.call(OpKind::Full, {Arg(Arg::List{}), arg, Arg()}, 1, node.loc(), &node);
      DType dtype = arg.is<bool>() ? DType::Bool : arg.is<int64_t>() ? DType::I64 : DType::F32;
      full->result()->setType(ir::TensorType::dense(dtype, {}, target_));
      if (originals_.contains(&node))
        evaluated(*full);
      arg = Arg(full->result());
    };
    for (unsigned i = 0; i < args.size() && i < schema.args.size(); ++i) {
      if (schema.args[i].kind != ir::ArgKind::Tensor)
        continue;
      if (schema.args[i].isList && args[i].isList())
        llvm::for_each(args[i].list(), toTensor);
      else
        toTensor(args[i]);
    }
  }

  void know(Node &node, unsigned result, Arg value) {
    known_[node.result(result)] = std::move(value);
  }
  void evaluated(Node &node) {
    if (!evaluated_.empty() && evaluated_.back() == &node)
      return;
    evaluated_.push_back(&node);
    changed_ = true;
  }
  void setType(Value *value, ir::TensorType type) {
    if (value->type() != ir::Type(type)) {
      value->setType(std::move(type));
      changed_ = true;
    }
  }

  ir::Graph &graph_;
  DeviceKind target_;
  ir::Diagnostics &diagnostics_;
  llvm::DenseMap<const Value *, Arg> known_; ///< Host values. Looked up, never iterated.
  std::vector<Node *> evaluated_;            ///< Nodes that vanish, in order.
  llvm::DenseSet<const Node *> originals_;   ///< Never iterated.
  BranchStack branches_;
  bool untyped_;
  llvm::DenseSet<const Value *> tensors_; ///< Those without types. Looked up, never iterated.
  bool substitutionAtFault_ = false;
  bool changed_ = false;
};

} // namespace

Result<Changed> SpecializePass::run(ir::Graph &graph, PassContext &context) const {
  CGC_ASSIGN_OR_RETURN(Changed changed, DcePass().run(graph, context)); // Dead code is not judged.
  ir::Diagnostics diagnostics;
  Specializer specializer(graph, context.target, diagnostics);
  if (specializer.run())
    changed = Changed::Yes;
  if (!diagnostics.hasErrors())
    return changed;
  if (context.diagnostics)
    for (const ir::Diagnostic &error : diagnostics.errors())
      context.diagnostics->error(error);
  return diagnostics.toStatus(specializer.isSubstitutionAtFault() ? Code::Failed
                                                                  : Code::Unsupported);
}

void judge(ir::Graph &graph, DeviceKind target, ir::Diagnostics &diagnostics) {
  PassContext context;
  if (DcePass().run(graph, context))
    Specializer(graph, target, diagnostics, /*untyped=*/true).run();
}

} // namespace cgc::passes

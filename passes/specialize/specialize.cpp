// SpecializePass: one walk in execution order. This file has types and host values.
#include "passes/specialize/specialize.h"

#include "ir/fallback.h"
#include "ir/op_def.h"
#include "ir/text/text.h"
#include "passes/canonicalize/dce.h"
#include "passes/canonicalize/in_place.h"
#include "passes/manager/registered_pass.h"
#include "passes/preconditions.h"
#include "passes/specialize/numbers_of_tensors.h"
#include "passes/specialize/specializer.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"

namespace cgc::passes {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

namespace {

/// Returns true for a dict on the host: a list of [key, value] pairs.
bool isDict(const Arg &arg) {
  return arg.isList() && !arg.list().empty() && llvm::all_of(arg.list(), [](const Arg &pair) {
           return pair.isList() && pair.list().size() == 2 && pair.list()[0].is<std::string>();
         });
}

bool dependsOnError(const Arg &arg) {
  bool depends = false;
  arg.forEachValue([&](Value *value) { depends |= value->type().isDynamic(); });
  return depends;
}

bool takesTensor(OpKind op) {
  return llvm::any_of(ir::opSchema(op).args, [](const ir::SchemaArg &arg) {
    return arg.kind == ir::ArgKind::Tensor || arg.kind == ir::ArgKind::TensorOrNumber;
  });
}

} // namespace

bool Specializer::run() {
  for (Node &node : llvm::make_early_inc_range(graph_)) {
    visit(node);
    if (isSilent()) { // The nodes that a substitution replaced are erased.
      rememberReplaced(node);
      markForErasure(node);
    }
  }
  diagnoseReplaced();
  diagnoseViews();
  if (!untyped_ && !diagnostics_.hasErrors())
    for (Node *node : llvm::reverse(toErase_))
      graph_.erase(node);
  return changed_;
}

void Specializer::visit(Node &node) {
  if (node.is(OpKind::PrimIf))
    return visitIf(node);
  if (node.is(OpKind::PrimElse)) {
    branches_.enterElse();
    return markForErasure(node);
  }
  if (node.is(OpKind::PrimEndIf))
    return visitEndIf(node);
  if (branches_.isSkipped())
    return markForErasure(node);
  switch (node.kind()) {
  case ir::NodeKind::Placeholder:
    visitPlaceholder(node);
    break;
  case ir::NodeKind::GetAttr:
    visitGetAttr(node);
    break;
  case ir::NodeKind::CallModule:
    llvm_unreachable("requireInlined() refuses them");
  case ir::NodeKind::CallFunction:
    visitCall(node);
    break;
  case ir::NodeKind::Output:
    visitOutput(node);
    break;
  }
}

void Specializer::visitPlaceholder(Node &node) {
  if (!node.result()->type().isDynamic())
    return;
  const Arg *value = node.defaultValue();
  if (value && !(untyped_ && value->isNone())) {
    setHostValue(node, 0, *value);
    markForErasure(node);
  } else if (untyped_) {
    tensors_.insert(node.result());
  } else {
    error(node, "input '" + node.result()->name() +
                    "' has no type; in IR text the graph's header gives it, as in %" +
                    node.result()->name() + ": f32[1,3]");
  }
}

void Specializer::visitGetAttr(Node &node) {
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

void Specializer::visitCall(Node &node) {
  std::vector<Arg> args = node.args().vec();
  for (Arg &arg : args)
    resolve(arg);
  const ir::InferArgs named(ir::opSchema(node.op()), args);
  if (node.op() == OpKind::PrimSubstituted) {
    const Arg &replacement = named["replacement"];
    if (dependsOnError(replacement))
      return;
    // Without a type of the original there is nothing to compare with: cgc cannot compile it.
    return dependsOnError(named["original"])
               ? evaluate(node, {replacement, replacement, named["name"]})
               : evaluate(node, args);
  }
  if (node.op() == OpKind::Fallback) {
    // The node is printed below with its whole schema.
    const llvm::StringRef op = ir::fallbackName(node).full;
    const ir::Cause cause = causeOfFallback(node);
    error(node, ir::explain("cgc cannot compile " + op.str(), cause), cause);
    return;
  }
  if (node.op() == OpKind::PrimRefused) {
    report(node, node.arg("reason").as<std::string>(),
           ir::parseCause(node.arg("cause").as<std::string>()));
    return;
  }
  if (node.op() == OpKind::PrimRaise)
    return visitRaise(node, named["message"]);
  rememberTensors(node, args);
  // The value it depends on was reported, or is unknown without types.
  if (llvm::any_of(args, [](const Arg &arg) { return dependsOnError(arg); }))
    return diagnoseUntyped(node, args);
  if (node.is(OpKind::CgcHostCall))
    return visitHostCall(node, std::move(args));
  numbersFromConstants(node, args);
  bool onHost = ir::hasTrait(node.op(), ir::kHost);
  bool allConstant = llvm::all_of(args, [](const Arg &arg) { return arg.isConstant(); });
  if (onHost || (allConstant && ir::opDef(node.op()).evaluate && takesTensor(node.op())))
    evaluate(node, args);
  else
    infer(node, std::move(args));
}

void Specializer::evaluate(Node &node, llvm::ArrayRef<Arg> args) {
  if (!args.empty() && isTensor(args.front()) && reportHostRead(node))
    return;
  auto *evaluate = ir::opDef(node.op()).evaluate;
  Result<Arg> value = evaluate ? evaluate(args)
                               : Status(Code::Unsupported, "cgc cannot evaluate this op at "
                                                           "compile time");
  if (!value) {
    if (ir::hasTrait(node.op(), ir::kHost))
      error(node, value.status().message());
    else // For arithmetic on numbers, the operands are the whole context.
      report(node, ir::opName(node.op()).str() + " of " + ir::argText(Arg(Arg::List(args))) + ": " +
                       value.status().message());
    return;
  }
  if (batchSizes_ && !isSilent())
    batchSizes_->follow(node, args, *value);
  if (node.numResults() == 1 && node.op() != OpKind::PrimUnpack) {
    setHostValue(node, 0, *value);
    return markForErasure(node);
  }
  size_t count = value->isList() ? value->list().size() : 0;
  if (count != node.numResults()) {
    error(node, "a list of " + std::to_string(count) + " elements is unpacked into " +
                    std::to_string(node.numResults()));
    return;
  }
  for (unsigned i = 0; i < count; ++i)
    setHostValue(node, i, value->list()[i]);
  markForErasure(node);
}

void Specializer::infer(Node &node, std::vector<Arg> args) {
  tensorsFromNumbers(node, args);
  auto inferred = ir::inferResults(node.op(), args, target_);
  if (!inferred) {
    error(node, inferred.status().message(), causeOfRefusal(node, args));
    return;
  }
  // One dynamic result stands for the whole list and becomes several typed results.
  if (ir::opSchema(node.op()).listResult && node.numResults() == 1 &&
      node.result()->type().isDynamic()) {
    Node *several = graph_.call(node.op(), std::move(args), inferred->size(), node.loc(), &node);
    Arg::List values;
    for (unsigned i = 0; i < several->numResults(); ++i) {
      several->result(i)->setType((*inferred)[i].type);
      values.emplace_back(several->result(i));
    }
    setHostValue(node, 0, Arg(std::move(values)));
    if (batchSizes_)
      batchSizes_->followTensors(*several);
    if (isSilent())
      markForErasure(*several);
    return markForErasure(node);
  }
  if (inferred->size() != node.numResults()) {
    error(node, "the op yields " + std::to_string(inferred->size()) + " results and is used for " +
                    std::to_string(node.numResults()));
    return;
  }
  if (node.isInPlace()) {
    const ir::TensorType &self = args.front().value()->tensor();
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
  if (batchSizes_)
    batchSizes_->followTensors(node);
  if (node.isInPlace())
    if (Overwritten what = overwritten(node); !what.message.empty())
      error(node, "in-place op: " + what.message, what.cause);
}

void Specializer::numbersFromConstants(const Node &node, std::vector<Arg> &args) const {
  if (!ir::opDef(node.op()).evaluate || !takesTensor(node.op()))
    return;
  // In ATen the first operand is a tensor, but in 2 ** x: a number there is from the size of a
  // parameter, which was known before.
  const auto isSize = [&](const auto &at) {
    const auto &[i, before, now] = at;
    return now.asNumber() && (before.isValue() || (i == 0 && !node.is(OpKind::Pow)));
  };
  if (!llvm::any_of(llvm::enumerate(node.args(), args), isSize))
    return;
  for (Arg &arg : args)
    if (std::optional<Arg> number = arg.isValue() ? numberOf(*arg.value()->node()) : std::nullopt)
      arg = *std::move(number);
}

std::optional<Arg> Specializer::numberOf(const Node &node) const {
  if (node.is(OpKind::To) || node.is(OpKind::Detach)) {
    std::vector<Arg> args = node.args().vec();
    std::optional<Arg> self = args[0].isValue() ? numberOf(*args[0].value()->node()) : std::nullopt;
    if (!self)
      return std::nullopt;
    args[0] = *std::move(self);
    return ir::evaluateEarly(node.op(), args);
  }
  const ir::Parameter *parameter = node.kind() == ir::NodeKind::GetAttr && graph_.owner()
                                       ? graph_.owner()->findParameter(node.target())
                                       : nullptr;
  if (!parameter || parameter->kind != ir::Parameter::Kind::Constant || !parameter->data ||
      parameter->type.rank() != 0)
    return std::nullopt;
  const std::byte *bytes = parameter->data->bytes().data();
  if (parameter->type.dtype == DType::F32)
    return Arg(double(llvm::support::endian::read<float>(bytes, llvm::endianness::native)));
  if (parameter->type.dtype == DType::F64)
    return Arg(llvm::support::endian::read<double>(bytes, llvm::endianness::native));
  return std::nullopt;
}

void Specializer::tensorsFromNumbers(Node &node, std::vector<Arg> &args) {
  forEachNumberOfTensor(node.op(), args, [&](Arg &arg) {
    Node *full = graph_.call(OpKind::Full, {Arg(Arg::List{}), arg, Arg()}, 1, node.loc(), &node);
    DType dtype = arg.is<bool>() ? DType::Bool : arg.is<int64_t>() ? DType::I64 : DType::F32;
    full->result()->setType(ir::TensorType::dense(dtype, {}, target_));
    if (isSilent())
      markForErasure(*full);
    arg = Arg(full->result());
  });
}

void Specializer::visitOutput(Node &node) {
  std::vector<Arg> flat;
  std::vector<std::string> names;
  const std::vector<std::string> given = graph_.outputNames();
  bool named = !given.empty();
  const size_t outputs = node.args().size() - graph_.stateWrites().size(); // States come last.
  for (auto [i, output] : llvm::enumerate(node.args())) {
    Arg arg = output;
    resolve(arg);
    if (i >= outputs) {
      flat.push_back(std::move(arg));
      continue;
    }
    const std::string position = outputs > 1 ? std::to_string(i) : "";
    flatten(arg, given.empty() ? position : given[i], node, flat, names, named);
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

void Specializer::flatten(const Arg &arg, const std::string &name, const Node &node,
                          std::vector<Arg> &flat, std::vector<std::string> &names, bool &named) {
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
    error(node,
          "the model returns " + ir::argText(arg) + ", which is not a tensor; return tensors only");
  }
}

void Specializer::resolve(Arg &arg) {
  arg.mapValues([&](Value *value) {
    auto it = hostValues_.find(value);
    return it == hostValues_.end() ? Arg(value) : it->second;
  });
  if (arg.is<DeviceKind>())
    arg = Arg(target_);
  if (arg.isList())
    for (Arg &element : arg.list())
      if (element.is<DeviceKind>())
        element = Arg(target_);
}

void Specializer::setHostValue(Node &node, unsigned result, Arg value) {
  hostValues_[node.result(result)] = std::move(value);
}

void Specializer::markForErasure(Node &node) {
  if (!toErase_.empty() && toErase_.back() == &node)
    return;
  toErase_.push_back(&node);
  changed_ = true;
}

void Specializer::setType(Value *value, ir::TensorType type) {
  if (value->type() != ir::Type(type)) {
    value->setType(std::move(type));
    changed_ = true;
  }
}

namespace {

Result<Changed> specialize(ir::Graph &graph, PassContext &context, BatchSizes *batchSizes) {
  CGC_TRY(requireInlined(graph));
  // Dead code is not diagnosed.
  CGC_ASSIGN_OR_RETURN(Changed changed, DcePass().run(graph, context));
  ir::Diagnostics diagnostics;
  Specializer specializer(graph, context.target, diagnostics, context.hostTypes,
                          /*untyped=*/false, batchSizes);
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

} // namespace

Result<Changed> SpecializePass::run(ir::Graph &graph, PassContext &context) const {
  return specialize(graph, context, /*batchSizes=*/nullptr);
}

Result<std::optional<BatchUse>> findBatchUse(ir::Graph &graph, PassContext &context,
                                             int64_t batch) {
  BatchSizes sizes(batch);
  const Status status = specialize(graph, context, &sizes).status();
  if (!sizes.use())
    CGC_TRY(status);
  return sizes.use();
}

void diagnose(ir::Graph &graph, DeviceKind target, ir::Diagnostics &diagnostics) {
  PassContext context;
  if (DcePass().run(graph, context))
    Specializer(graph, target, diagnostics, /*hostTypes=*/nullptr, /*untyped=*/true).run();
}

CGC_DEFINE_PASS(SpecializePass)

} // namespace cgc::passes

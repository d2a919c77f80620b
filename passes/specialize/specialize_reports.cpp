// Specializer: errors about a model, and diagnosis without types.
#include "ir/fallback.h"
#include "ir/op_def.h"
#include "ir/text/text.h"
#include "passes/specialize/specializer.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

namespace {

/// Returns the Python name of an op that reads one element of a tensor; empty for other ops.
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

/// Returns true if the result is bool whatever the operands are.
bool isComparison(const Node &node) {
  return node.is(OpKind::Eq) || node.is(OpKind::Ne) || node.is(OpKind::Lt) || node.is(OpKind::Le) ||
         node.is(OpKind::Gt) || node.is(OpKind::Ge);
}

/// Returns true if `arg` selects elements by a mask, so that their number depends on data.
bool isMask(const Arg &arg) {
  if (!arg.isValue())
    return false;
  if (!arg.value()->isTensor())
    return isComparison(*arg.value()->node());
  const DType dtype = arg.value()->tensor().dtype;
  return dtype == DType::Bool || dtype == DType::U8;
}

} // namespace

ir::Cause causeOfRefusal(const Node &node, llvm::ArrayRef<Arg> args) {
  const ir::InferArgs named(ir::opSchema(node.op()), args);
  if (node.is(OpKind::Index) && named["indices"].isList() &&
      llvm::any_of(named["indices"].list(), isMask))
    return ir::Cause::DataShape;
  // A mask may choose where one element is written.
  if (node.is(OpKind::IndexPut) && named["indices"].isList() && named.isTensor("values") &&
      named["values"].value()->isTensor() && named.tensor("values").numElements() != 1 &&
      llvm::any_of(named["indices"].list(), isMask))
    return ir::Cause::DataShape;
  if (node.is(OpKind::Dropout) && named["train"] == Arg(true))
    return ir::Cause::Random;
  if (node.is(OpKind::ScaledDotProductAttention))
    if (auto p = named["dropout_p"].asNumber(); p && *p != 0)
      return ir::Cause::Random;
  if (node.is(OpKind::BatchNorm) && named["training"] == Arg(true))
    return ir::Cause::MutatesState;
  return ir::Cause::None;
}

ir::Cause causeOfFallback(const Node &node) {
  const llvm::StringRef op = ir::fallbackName(node).op;
  const ir::Cause cause = ir::causeOf(op);
  const Arg &operands = node.arg("args");
  if (cause != ir::Cause::NoRule || !isInPlaceName(op) || !operands.isList() ||
      operands.list().empty() || !operands.list().front().isValue())
    return cause;
  switch (ownerOf(operands.list().front().value()).kind()) {
  case ir::NodeKind::Placeholder:
    return ir::Cause::MutatesInput;
  case ir::NodeKind::GetAttr:
    return ir::Cause::MutatesState;
  default:
    return cause;
  }
}

void Specializer::error(const Node &node, std::string message, ir::Cause cause) {
  if (isSilent())
    return;
  substitutionAtFault_ |= node.is(OpKind::PrimSubstituted);
  diagnostics_.error(node, std::move(message), cause);
}

void Specializer::report(const Node &node, std::string message, ir::Cause cause) {
  if (isSilent())
    return;
  ir::Diagnostic diagnostic;
  if (cause != ir::Cause::None) {
    llvm::StringRef op = llvm::StringRef(message).split(": ").first;
    op.consume_front("cgc cannot compile ");
    diagnostic.op = op.str();
  }
  diagnostic.message = std::move(message);
  diagnostic.loc = node.loc();
  diagnostic.cause = cause;
  diagnostics_.error(std::move(diagnostic));
}

void Specializer::reportCause(const Node &node, llvm::StringRef what, ir::Cause cause) {
  report(node, ir::explain(what, cause), cause);
}

bool Specializer::reportHostRead(Node &node) {
  const llvm::StringRef what = hostRead(node);
  if (!what.empty() && !decidesOnly(node))
    reportCause(node, what, ir::Cause::HostRead);
  return !what.empty();
}

void Specializer::diagnoseUntyped(Node &node, llvm::ArrayRef<Arg> args) {
  if (node.is(OpKind::PrimIs)) { // A tensor that is given is not none.
    const ir::InferArgs named(ir::opSchema(OpKind::PrimIs), args);
    const Arg &a = named["a"], &b = named["b"];
    if ((isTensor(a) && b.isNone()) || (a.isNone() && isTensor(b)))
      setHostValue(node, 0, Arg(false));
  }
  if (!args.empty() && isTensor(args.front())) {
    reportHostRead(node);
    if (node.isInPlace() && args.front().isValue())
      if (const Node &owner = ownerOf(args.front().value());
          owner.kind() == ir::NodeKind::Placeholder)
        error(node, "in-place op: it overwrites the input '" + owner.result()->name() + "'",
              ir::Cause::MutatesInput);
  }
  if (const ir::Cause cause = causeOfRefusal(node, args); cause != ir::Cause::None)
    reportCause(node, "cgc cannot compile " + ir::opName(node.op()).str(), cause);
}

bool Specializer::isTensor(const Arg &arg) const {
  return arg.isValue() && (arg.value()->isTensor() || tensors_.contains(arg.value()));
}

void Specializer::rememberTensors(const Node &node, llvm::ArrayRef<Arg> args) {
  if (ir::hasTrait(node.op(), ir::kHost) || ir::opSchema(node.op()).listResult)
    return;
  // Arithmetic on sizes uses the same ops as tensors.
  const bool mayBeNumber = ir::opDef(node.op()).evaluate != nullptr;
  if (!mayBeNumber || llvm::any_of(args, [&](const Arg &arg) { return isTensor(arg); }))
    for (const Value &result : node.results())
      tensors_.insert(&result);
}

} // namespace cgc::passes

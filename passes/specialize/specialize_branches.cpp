// Specializer: branches. A branch whose condition is known loses the other side. Both sides of any
// other branch are visited, to report all errors.
#include "ir/op_def.h"
#include "ir/text/text.h"
#include "passes/specialize/specializer.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

void Specializer::visitIf(Node &node) {
  markForErasure(node);
  if (branches_.isSkipped())
    return branches_.enter(std::nullopt);
  Arg condition = node.arg("condition");
  resolve(condition);
  if (const bool *taken = condition.getIf<bool>())
    return branches_.enter(*taken);
  if (condition.is<std::string>()) // The nodes that a substitution replaced are typed and never
                                   // run.
    return branches_.enter(true, /*mayBeSkipped=*/true);
  const bool byData =
      isTensor(condition) || (condition.isValue() && decidesOnly(*condition.value()->node()));
  if (!condition.isValue())
    error(node, "the condition of this branch is " + ir::argText(condition) +
                    ", which is neither true nor false");
  else if (byData)
    reportCause(node, "data-dependent control flow", ir::Cause::DataFlow);
  branches_.enter(std::nullopt, /*mayBeSkipped=*/untyped_ && !byData);
}

void Specializer::visitEndIf(Node &node) {
  const std::optional<bool> taken = branches_.leave();
  markForErasure(node);
  if (branches_.isSkipped() || !taken)
    return;
  const Arg &given = node.arg(*taken ? "then" : "else");
  Arg side = given;
  resolve(side);
  for (unsigned i = 0; i < node.numResults(); ++i) {
    if (batchSizes_)
      batchSizes_->follow(node, i, given.list()[i]);
    setHostValue(node, i, side.list()[i]);
  }
}

void Specializer::visitRaise(Node &node, const Arg &message) {
  // In an undecided branch, one side may be an assertion that holds.
  if (branches_.allDecided())
    report(node,
           "the model raises an exception for these inputs: " +
               (message.is<std::string>() ? message.as<std::string>() : ir::argText(message)));
  markForErasure(node);
}

bool Specializer::decidesOnly(const Node &node) {
  if (!node.is(OpKind::PrimBool))
    return false;
  Arg operand = node.arg("a");
  resolve(operand);
  return isTensor(operand) && llvm::all_of(node.result()->users(), [](const Node *user) {
           return user->is(OpKind::PrimIf);
         });
}

} // namespace cgc::passes

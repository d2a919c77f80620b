// WideValues: origins in execution order, then what readers need in reverse order.
#include "passes/canonicalize/wide_values.h"

#include "ir/op_def.h"
#include "ir/op_views.h"
#include "passes/op_precision.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

using ir::Node;
using ir::OpKind;
using ir::Value;

namespace {

bool isFloat(const Value &value) {
  return value.isTensor() && isFloating(value.tensor().dtype);
}

bool hasFloats(const Node &node) {
  return llvm::any_of(node.results(), isFloat);
}

/// Normalizations compute in f32 whatever their arguments are.
bool normalizes(const Node &node) {
  return node.is(OpKind::LayerNorm) || node.is(OpKind::GroupNorm);
}

/// Whether the results of `node` may be out of the range of f16 for ordinary arguments, or are
/// needed with more digits than 16 bits have.
bool isSource(const Node &node) {
  if (node.kind() != ir::NodeKind::CallFunction || normalizes(node))
    return false;
  if (auto mul = ir::MulOp::of(node)) // A square, as pow is.
    return mul->other().isValue() && mul->other().value() == mul->self().value();
  return node.is(OpKind::Var) || precisionOf(node.op()) == OpPrecision::Full;
}

/// The dtype of an explicit cast; nullopt for other ops.
std::optional<DType> castsTo(const Node &node) {
  const auto to = ir::ToOp::of(node);
  const DType *dtype = to ? node.arg("dtype").getIf<DType>() : nullptr;
  return dtype ? std::optional(*dtype) : std::nullopt;
}

bool isWideCast(const Node &node) {
  const std::optional<DType> dtype = castsTo(node);
  return dtype && isFloating(*dtype) && dtypeSize(*dtype) > 2;
}

/// Whether the results have the elements of the arguments, in other places.
bool moves(const Node &node) {
  return node.kind() == ir::NodeKind::CallFunction && !node.is(OpKind::Embedding) &&
         (ir::hasTrait(node.op(), ir::kView) || ir::hasTrait(node.op(), ir::kMove)) &&
         (!node.is(OpKind::To) || !castsTo(node) || isWideCast(node));
}

/// Whether f32 arguments give f32 results.
bool passesOn(const Node &node) {
  return node.kind() == ir::NodeKind::CallFunction && !normalizes(node) &&
         !node.is(OpKind::BatchNorm) && !node.is(OpKind::Embedding) &&
         (moves(node) || ir::hasTrait(node.op(), ir::kPointwise) ||
          ir::hasTrait(node.op(), ir::kReduction)) &&
         !(node.is(OpKind::To) && !moves(node));
}

/// Whether a source reads `value`, directly or after moves.
bool isReadBySource(const Value &value) {
  return llvm::any_of(value.users(), [](const Node *user) {
    return isSource(*user) ||
           (moves(*user) && llvm::any_of(user->results(), [](const Value &result) {
              return isReadBySource(result);
            }));
  });
}

} // namespace

bool roundsOnce(const Node &node) {
  switch (node.op()) {
  case OpKind::LogSumExp:
  case OpKind::Prod:
  case OpKind::Cumsum:
  case OpKind::Cdist:
  case OpKind::Pdist:
    return false;
  default:
    return true;
  }
}

WideValues::WideValues(const ir::Graph &graph) {
  std::vector<const Node *> nodes;
  for (const Node &node : graph) {
    const Origin origin = originOf(node);
    for (const Value &result : node.results())
      if (isFloat(result))
        origins_[&result] = origin;
    nodes.push_back(&node);
  }
  for (const Node *node : llvm::reverse(nodes))
    for (const Value &result : node->results())
      if (isFloat(result) && origins_.at(&result) >= Origin::Cast && isReadWide(result))
        wide_.insert(&result);
}

bool WideValues::computesWide(const Node &node) const {
  if (llvm::any_of(node.results(), [&](const Value &result) { return contains(&result); }))
    return true;
  const bool widens = isSource(node) || normalizes(node);
  bool reads = false;
  node.forEachInput([&](const Value *value) {
    reads |= contains(value) && (widens || origins_.at(value) == Origin::Source);
  });
  return reads && (widens || passesOn(node));
}

bool WideValues::isCastOfNarrow(const Value &value) const {
  const Node &node = *value.node();
  if (!isWideCast(node))
    return false;
  const auto input = origins_.find(ir::ToOp::of(node)->self());
  return input != origins_.end() && input->second == Origin::Narrow;
}

WideValues::Origin WideValues::originOf(const Node &node) const {
  if (node.kind() == ir::NodeKind::GetAttr)
    return Origin::Constant;
  if (isSource(node))
    return Origin::Source;
  if (!hasFloats(node) || !passesOn(node))
    return Origin::Narrow;
  bool constant = false, narrow = false, cast = false, source = false;
  node.forEachInput([&](const Value *value) {
    if (!isFloat(*value))
      return;
    const Origin origin = origins_.at(value);
    constant |= origin == Origin::Constant;
    narrow |= origin == Origin::Narrow;
    cast |= origin == Origin::Cast;
    source |= origin == Origin::Source;
  });
  if (isWideCast(node))
    return source ? Origin::Source : constant ? Origin::Constant : Origin::Cast;
  if (source && narrow)
    return isReadBySource(*node.result()) ? Origin::Source : Origin::Narrow;
  return source ? Origin::Source : narrow ? Origin::Narrow : cast ? Origin::Cast : Origin::Constant;
}

bool WideValues::isReadWide(const Value &value) const {
  return llvm::any_of(value.users(), [&](const Node *user) { return readsWide(*user, value); });
}

bool WideValues::readsWide(const Node &user, const Value &value) const {
  const bool isOfSource = origins_.at(&value) == Origin::Source;
  if (user.kind() == ir::NodeKind::CallFunction && normalizes(user))
    return isOfSource;
  if (isSource(user)) // It widens what is in 16 bits before the cast.
    return !isCastOfNarrow(value);
  if (!passesOn(user))
    return false;
  if (moves(user))
    return llvm::any_of(user.results(), [&](const Value &result) { return contains(&result); });
  if (isOfSource || llvm::any_of(user.results(), [&](const Value &r) { return contains(&r); }))
    return true;
  bool meetsSource = false; // It is computed in f32.
  user.forEachInput([&](const Value *input) {
    meetsSource |= isFloat(*input) && origins_.at(input) == Origin::Source;
  });
  return meetsSource;
}

} // namespace cgc::passes

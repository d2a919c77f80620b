// GraphImporter: branches and loops. Branches and loops that constants decide are resolved. Other
// branches stay between prim.if and prim.end_if; other loops are refused.
#include "frontend/graph_import.h"
#include "ir/offenders.h"
#include "ir/op_def.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <utility>

namespace cgc::frontend {

using ir::Arg;
using ir::OpKind;
using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

namespace {

constexpr int64_t kMaxTrips = 1000;

/// The kind of dependency of a nonconstant value. The enumerator declared later wins where several
/// are combined.
enum class Origin {
  Shape,   ///< Only sizes, dtypes and devices of tensors.
  Refused, ///< A value that was itself refused.
  Data,    ///< Elements of tensors, or arguments of the caller.
};

/// Returns the condition of the branch that `end`, a prim.end_if, ends.
const Arg &conditionOf(const ir::Node &end) {
  unsigned inner = 0;
  auto it = std::prev(end.getIterator());
  for (; inner > 0 || !it->is(OpKind::PrimIf); --it)
    inner += it->is(OpKind::PrimEndIf) ? 1 : it->is(OpKind::PrimIf) ? -1 : 0;
  return it->arg("condition");
}

Origin originOf(const Arg &arg, unsigned depth = 0) {
  Origin origin = Origin::Shape;
  arg.forEachValue([&](const ir::Value *value) {
    const ir::Node &node = *value->node();
    Origin own = Origin::Data;
    if (node.is(OpKind::PrimRefused) || node.is(OpKind::Fallback))
      own = Origin::Refused;
    else if (node.is(OpKind::Size) || node.is(OpKind::Dim) || node.is(OpKind::Numel) ||
             node.is(OpKind::PrimDType) || node.is(OpKind::PrimDevice))
      own = Origin::Shape;
    else if (node.is(OpKind::PrimLen)) // The length of a tensor or of a list of tensors.
      own = originOf(node.arg("list"), depth + 1) == Origin::Refused ? Origin::Refused
                                                                     : Origin::Shape;
    else if (depth < 32 && node.is(OpKind::PrimEndIf)) {
      Arg::List deciders = {conditionOf(node)};
      for (const Arg &side : node.args())
        deciders.push_back(side.list()[value->index()]);
      own = originOf(Arg(std::move(deciders)), depth + 8); // Branches multiply.
    } else if (depth < 32 && node.kind() == ir::NodeKind::CallFunction &&
               ir::opDef(node.op()).evaluate) {
      own = Origin::Shape;
      for (const Arg &operand : node.args())
        own = std::max(own, originOf(operand, depth + 1));
    }
    origin = std::max(origin, own);
  });
  return origin;
}

} // namespace

void GraphImporter::importIf(const Node &node) {
  Arg condition = arg(node.input());
  if (condition.is<bool>()) {
    const Block &taken = *node.blocks()[condition.as<bool>() ? 0 : 1];
    importBlock(taken);
    for (auto [output, result] : llvm::zip(node.outputs(), taken.outputs()))
      bind(output, arg(result));
    return;
  }
  // The caller's constants or the shapes of a bucket may decide, so both sides stay.
  const ir::Loc loc = locOf(node);
  const llvm::DenseMap<const Value *, Arg> before = args_;
  const size_t mutationsBefore = mutated_.size();
  Arg::List results[2];
  llvm::DenseMap<const Value *, Arg> after[2];
  graph_.call(OpKind::PrimIf, {condition}, 0, loc);
  for (int side : {0, 1}) {
    if (side == 1)
      graph_.call(OpKind::PrimElse, {}, 0, loc);
    importBlock(*node.blocks()[side]);
    results[side] = argsOf(node.blocks()[side]->outputs());
    // Values computed in a side are not visible after it, and its list mutations do not reach the
    // other side.
    after[side] = std::exchange(args_, before);
  }
  std::vector<const Value *> outputs(node.outputs().begin(), node.outputs().end());
  for (const Value *list : llvm::drop_begin(mutated_, mutationsBefore)) {
    if (!before.count(list) || llvm::is_contained(outputs, list))
      continue;
    outputs.push_back(list);
    for (int side : {0, 1})
      results[side].push_back(after[side].lookup(list));
  }
  ir::Node *end = graph_.call(OpKind::PrimEndIf, {Arg(results[0]), Arg(results[1])},
                              static_cast<unsigned>(outputs.size()), loc);
  for (auto [output, result] : llvm::zip(outputs, end->results()))
    bind(output, &result);
}

void GraphImporter::importLoop(const Node &node) {
  // Inputs: trip count, initial condition, carried values. Block inputs: trip number, carried
  // values. Block outputs: condition, carried values.
  Arg trips = arg(node.inputs()[0]);
  Arg condition = arg(node.inputs()[1]);
  std::vector<Arg> carried = argsOf(node.inputs().slice(2));
  const Block &body = *node.blocks()[0];
  auto importTrip = [&](int64_t trip) {
    args_[body.inputs()[0]] = Arg(trip);
    for (auto [input, value] : llvm::zip(body.inputs().slice(1), carried))
      args_[input] = value;
    importBlock(body);
  };
  for (int64_t trip = 0;; ++trip) {
    if (trip > kMaxTrips) {
      refuse(node,
             ir::explain("loop of more than " + std::to_string(kMaxTrips) + " trips",
                         ir::Cause::TripCount),
             ir::Cause::TripCount);
      return;
    }
    if (!trips.is<int64_t>() || !condition.is<bool>()) {
      refuseLoop(node, Arg(Arg::List{trips, condition}));
      if (trip == 0)
        importTrip(0); // Imports one trip, to report other errors in the body.
      return;
    }
    if (trip >= trips.as<int64_t>() || !condition.as<bool>())
      break;
    importTrip(trip);
    condition = arg(body.outputs()[0]);
    carried = argsOf(body.outputs().slice(1));
  }
  for (auto [output, value] : llvm::zip(node.outputs(), carried))
    bind(output, value);
}

void GraphImporter::refuseLoop(const Node &node, const Arg &decider) {
  switch (originOf(decider)) {
  case Origin::Shape:
    refuse(node, ir::explain("loop", ir::Cause::TripCount), ir::Cause::TripCount);
    return;
  case Origin::Data:
    refuse(node, ir::explain("data-dependent control flow", ir::Cause::DataFlow),
           ir::Cause::DataFlow);
    return;
  case Origin::Refused: // The refusal is reported, and nothing that depends on it.
    decider.forEachValue([&](ir::Value *value) {
      if (originOf(Arg(value)) == Origin::Refused)
        for (const Value *output : node.outputs())
          args_[output] = value;
    });
    return;
  }
}

} // namespace cgc::frontend

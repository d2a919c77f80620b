// GraphImporter: branches and loops. Those that constants decide are resolved; the others are
// refused.
#include "frontend/graph_import.h"
#include "ir/op_def.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace cgc::frontend {

using ir::Arg;
using ir::OpKind;
using torch::jit::Block;
using torch::jit::Node;

namespace {

constexpr int64_t kMaxTrips = 1000;

/// What a value that is no constant depends on; the later one wins where several come together.
enum class Origin {
  Shape,   ///< Only sizes, dtypes and devices of tensors.
  Refused, ///< Something that was refused itself.
  Data,    ///< Elements of tensors, or what the caller gives.
};

Origin originOf(const Arg &arg, unsigned depth = 0) {
  Origin origin = Origin::Shape;
  arg.forEachValue([&](const ir::Value *value) {
    const ir::Node &node = *value->node();
    Origin own = Origin::Data;
    if (node.is(OpKind::PrimRefused) || node.is(OpKind::Fallback))
      own = Origin::Refused;
    else if (node.is(OpKind::Size) || node.is(OpKind::Dim) || node.is(OpKind::Numel) ||
             node.is(OpKind::PrimLen) || node.is(OpKind::PrimDType) || node.is(OpKind::PrimDevice))
      own = Origin::Shape;
    else if (node.kind() == ir::NodeKind::CallFunction && ir::opDef(node.op()).evaluate &&
             depth < 32) {
      own = Origin::Shape;
      for (const Arg &operand : node.args())
        own = std::max(own, originOf(operand, depth + 1));
    }
    origin = std::max(origin, own);
  });
  return origin;
}

/// Whether a block is the failing side of an assertion.
bool raises(const Block &block) {
  return llvm::any_of(block.nodes(),
                      [](const Node *node) { return node->kind() == c10::prim::RaiseException; });
}

} // namespace

void GraphImporter::importIf(const Node &node) {
  Arg condition = arg(node.input());
  if (!condition.is<bool>()) {
    refuseFlow(node, condition, "the condition of this branch");
    // What else cannot be compiled is to be known, too.
    for (const Block *side : node.blocks())
      if (!raises(*side))
        importBlock(*side);
    return;
  }
  const Block &taken = *node.blocks()[condition.as<bool>() ? 0 : 1];
  importBlock(taken);
  for (auto [output, result] : llvm::zip(node.outputs(), taken.outputs()))
    bind(output, arg(result));
}

void GraphImporter::importLoop(const Node &node) {
  // Inputs: trip count, initial condition, carried values. Block: trip number, carried ->
  // condition, carried.
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
      refuse(node, "a loop of more than " + std::to_string(kMaxTrips) + " trips");
      return;
    }
    if (!trips.is<int64_t>() || !condition.is<bool>()) {
      refuseFlow(node, Arg(Arg::List{trips, condition}), "the trip count of this loop");
      if (trip == 0)
        importTrip(0); // As for a branch.
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

void GraphImporter::refuseFlow(const Node &node, const Arg &decider, const char *what) {
  switch (originOf(decider)) {
  case Origin::Shape:
    refuse(node, std::string("control flow: ") + what +
                     " depends on a shape, which cgc does not resolve in scripted code. Export "
                     "with torch.jit.trace, which keeps what the example's shapes lead to");
    return;
  case Origin::Data:
    refuse(node, std::string("data-dependent control flow: ") + what +
                     " is not a constant. Export with torch.jit.trace, or compute both sides and "
                     "choose with torch.where");
    return;
  case Origin::Refused:
    refuse(node, std::string("control flow: ") + what + " depends on what cgc cannot compile");
    return;
  }
}

} // namespace cgc::frontend

// RowStates: tries the ways in which each call may read its operands.
#include "passes/train/row_states.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {

using ir::BatchState;
using ir::Node;
using ir::OpKind;
using ir::Value;

namespace {

/// The state of the results of a call whose tensors have the batch as their first dimension, but
/// for an attention mask of fewer dimensions.
BatchState firstDimension(const Node &node, ir::BatchCall::StateOf stateOf) {
  bool fits = true;
  node.forEachInput([&](const Value *value) {
    const ir::TensorType &type = value->tensor();
    const bool isMask = node.is(OpKind::CgcAttention) && type.rank() < 4;
    const bool isShared = stateOf(*value).kind == BatchState::Shared;
    fits &= isMask ? isShared
                   : stateOf(*value) == BatchState::rows(0) || (isShared && type.sizes[0] == 1);
  });
  return fits ? BatchState::rows(0) : BatchState::mixed();
}

} // namespace

RowStates::RowStates(const ir::Graph &graph, int64_t batch) : batch_(batch) {
  for (const Value *input : graph.inputs()) {
    const ir::Dims &sizes = input->tensor().sizes;
    states_[input] = !sizes.empty() && sizes[0] == batch ? BatchState::rows(0) : BatchState();
  }
  for (const Node &node : graph) {
    if (node.kind() == ir::NodeKind::GetAttr)
      states_[node.result()] = {};
    if (node.kind() != ir::NodeKind::CallFunction)
      continue;
    const BatchState state = visit(node);
    for (const Value &result : node.results())
      states_[&result] = state;
  }
}

BatchState RowStates::use(const Node &node, const Value *value) const {
  const auto other = uses_.find({&node, value});
  return other == uses_.end() ? states_.at(value) : other->second;
}

/// The state of the results. Tries the operands as they are, then in the other ways to read them.
BatchState RowStates::visit(const Node &node) {
  for (size_t way = 0, count = 1; way < count; ++way) {
    llvm::SmallDenseMap<const Value *, BatchState, 4> uses;
    node.forEachInput([&](const Value *value) {
      const auto ways = waysToRead(*value);
      count = std::max(count, ways.size());
      uses[value] = way < ways.size() ? ways[way] : ways[0];
    });
    const BatchState state = stateOf(node, [&](const Value &value) { return uses.lookup(&value); });
    if (state.kind == BatchState::Mixed)
      continue;
    for (const auto &[value, use] : uses)
      if (use != states_.at(value))
        uses_[{&node, value}] = use;
    return state;
  }
  return BatchState::mixed();
}

/// The first way is the value's state. Of a tensor that all rows share the others are the
/// dimensions whose sizes are multiples of the batch; those of row numbers are Shared and these.
llvm::SmallVector<BatchState, 4> RowStates::waysToRead(const Value &value) const {
  const BatchState state = states_.at(&value);
  llvm::SmallVector<BatchState, 4> ways = {state};
  if (state.kind == BatchState::Rows || state.kind == BatchState::Mixed)
    return ways;
  if (state.kind == BatchState::RowIndex)
    ways.push_back(BatchState());
  for (const auto &[dim, size] : llvm::enumerate(value.tensor().sizes))
    if (size > 0 && size % batch_ == 0)
      ways.push_back(BatchState::rows(static_cast<int64_t>(dim), size / batch_));
  return ways;
}

BatchState RowStates::stateOf(const Node &node, ir::BatchCall::StateOf stateOf) const {
  bool anyRows = false;
  node.forEachInput(
      [&](const Value *value) { anyRows |= stateOf(*value).kind != BatchState::Shared; });
  // Whether a tensor that all rows share has a size of the batch does not matter.
  if (!anyRows && !node.is(OpKind::Arange))
    return ir::hasTrait(node.op(), ir::kPure) ? BatchState() : BatchState::mixed();
  switch (node.op()) {
  case OpKind::CgcDropout:
    return stateOf(*node.arg("self").value());
  case OpKind::CgcAttention: // Selected before the backward pass, as the next two.
  case OpKind::CgcPatches:
  case OpKind::CgcRows:
    return firstDimension(node, stateOf);
  default:
    return ir::batchState(node, batch_, stateOf);
  }
}

} // namespace cgc::passes

// BatchState: how the elements of a value depend on the rows of a batch.
#include "ir/batch.h"

#include "ir/graph.h"
#include "ir/ops/batch_rules.h"

namespace cgc::ir {

std::string toString(const BatchState &state) {
  const std::string where = " in dimension " + std::to_string(state.dim) +
                            (state.inner == 1 ? "" : ", every " + std::to_string(state.inner));
  switch (state.kind) {
  case BatchState::Shared:
    return "shared";
  case BatchState::Rows:
    return "rows" + where;
  case BatchState::RowIndex:
    return "row numbers" + where;
  case BatchState::Mixed:
    return "mixed";
  }
  return "";
}

const Schema &BatchCall::schemaOf(const Node &node) {
  return opSchema(node.op());
}

llvm::ArrayRef<Arg> BatchCall::argsOf(const Node &node) {
  return node.args();
}

BatchState BatchCall::state(const Arg &arg) const {
  return arg.isValue() ? stateOf_(*arg.value()) : BatchState();
}

const Arg &BatchCall::first() const {
  return node_.args().front();
}

const Arg *BatchCall::find(llvm::StringRef name) const {
  const auto index = schemaOf(node_).find(name);
  return index ? &node_.args()[*index] : nullptr;
}

llvm::SmallVector<Arg, 4> BatchCall::tensors() const {
  llvm::SmallVector<Arg, 4> tensors;
  node_.forEachInput([&](Value *value) { tensors.emplace_back(value); });
  return tensors;
}

const TensorType &BatchCall::result() const {
  return node_.result()->tensor();
}

bool BatchCall::hasRows() const {
  bool found = false;
  node_.forEachInput(
      [&](const Value *value) { found |= stateOf_(*value).kind != BatchState::Shared; });
  return found;
}

BatchState batchState(const Node &node, int64_t batch, BatchCall::StateOf stateOf) {
  bool mixed = false;
  node.forEachInput(
      [&](const Value *value) { mixed |= stateOf(*value).kind == BatchState::Mixed; });
  if (mixed)
    return BatchState::mixed();
  const BatchCall call(node, batch, stateOf);
  const OpDef &def = opDef(node.op());
  if (def.batch)
    return def.batch(call);
  if (def.traits & kPointwise)
    return batch::pointwise(call);
  return (def.traits & kPure) && !call.hasRows() ? BatchState() : BatchState::mixed();
}

} // namespace cgc::ir

// batch_rules: the batch rules of ops.
#include "ir/ops/batch_rules.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

namespace cgc::ir::batch {
namespace {

const TensorType &typeOf(const Arg &arg) {
  return arg.value()->tensor();
}

int64_t wrapped(int64_t dim, int64_t rank) {
  return dim < 0 ? dim + std::max<int64_t>(rank, 1) : dim;
}

/// The dimensions of a tensor of this rank that an argument names: an int or a list. All of them if
/// the argument is absent, none or empty.
llvm::SmallVector<bool, 6> namedDims(const Arg *dims, int64_t rank) {
  llvm::SmallVector<bool, 6> named(rank, false);
  Dims list;
  if (dims && !dims->isNone())
    list = dims->isList() ? *dims->asInts() : Dims{*dims->asInt()};
  if (list.empty())
    named.assign(rank, true);
  for (int64_t dim : list)
    if (rank > 0)
      named[wrapped(dim, rank)] = true;
  return named;
}

} // namespace

DimMap broadcast(const TensorType &operand, const TensorType &result) {
  DimMap map(operand.rank());
  std::iota(map.begin(), map.end(), result.rank() - operand.rank());
  return map;
}

DimMap without(const TensorType &operand, int64_t dim, bool dropped) {
  llvm::SmallVector<bool, 6> marked(operand.rank(), false);
  if (operand.rank() > 0)
    marked[dim] = true;
  return reduced(marked, !dropped);
}

DimMap leading(const TensorType &operand, int64_t kept) {
  DimMap map(operand.rank(), kCombined);
  std::iota(map.begin(), map.begin() + std::clamp<int64_t>(kept, 0, operand.rank()), 0);
  return map;
}

DimMap reduced(llvm::ArrayRef<bool> marked, bool kept) {
  DimMap map;
  int64_t next = 0;
  for (bool mark : marked) {
    map.push_back(mark ? kCombined : next);
    next += !mark || kept;
  }
  return map;
}

int64_t dimOf(const BatchCall &call, const TensorType &type, llvm::StringRef name) {
  return wrapped(call.args.integer(name), type.rank());
}

BatchState permuted(const BatchCall &call, llvm::ArrayRef<int64_t> order) {
  BatchState state = call.state(call.first());
  if (state.kind != BatchState::Shared)
    state.dim = llvm::find(order, state.dim) - order.begin();
  return state;
}

Join &Join::add(const Arg &operand, DimMap map) {
  if (operand.isValue())
    operands_.push_back({operand.value(), call_.state(operand), std::move(map)});
  return *this;
}

Join &Join::ignore(const Arg &operand) {
  operands_.push_back({operand.value(), {}, DimMap(typeOf(operand).rank(), kCombined)});
  return *this;
}

BatchState Join::state() const {
  std::optional<BatchState> rows;
  for (const Operand &operand : operands_) {
    if (operand.state.kind == BatchState::Shared)
      continue;
    if (operand.state.kind != BatchState::Rows)
      return BatchState::mixed();
    const int64_t dim = operand.map[operand.state.dim];
    const BatchState here = BatchState::rows(dim, operand.state.inner);
    const int64_t size = operand.value->tensor().sizes[operand.state.dim];
    if (dim == kCombined || (rows && *rows != here) || size != call_.result().sizes[dim])
      return BatchState::mixed();
    rows = here;
  }
  for (const Arg &tensor : call_.tensors())
    if (call_.state(tensor).kind != BatchState::Shared &&
        llvm::none_of(operands_, [&](const Operand &o) { return o.value == tensor.value(); }))
      return BatchState::mixed();
  if (!rows)
    return {};
  for (const Operand &operand : operands_)
    if (operand.state.kind == BatchState::Shared)
      for (auto [dim, size] : llvm::zip_equal(operand.map, operand.value->tensor().sizes))
        if (dim == rows->dim && size != 1)
          return BatchState::mixed();
  return *rows;
}

BatchState pointwise(const BatchCall &call) {
  Join join(call);
  for (const Arg &tensor : call.tensors())
    join.add(tensor, broadcast(typeOf(tensor), call.result()));
  return join.state();
}

BatchState copy(const BatchCall &call) {
  const BatchState state = call.state(call.first());
  const DType dtype = call.result().dtype;
  const bool holdsNumbers = dtype == DType::I64 || dtype == DType::I32;
  return state.kind == BatchState::RowIndex && !holdsNumbers ? BatchState::mixed() : state;
}

BatchState view(const BatchCall &call) {
  BatchState state = call.state(call.first());
  if (state.kind == BatchState::Shared)
    return state;
  // The elements of one row lie together in runs of `run` elements, in row-major order.
  int64_t run = state.inner;
  for (int64_t size : llvm::ArrayRef(typeOf(call.first()).sizes).drop_front(state.dim + 1))
    run *= size;
  const Dims &sizes = call.result().sizes;
  int64_t behind = 1; // The elements behind an index of the dimension.
  for (int64_t dim = call.result().rank() - 1; dim >= 0 && behind > 0; --dim) {
    const int64_t together = behind * sizes[dim];
    if (together > 0 && run % behind == 0 && together % (run * call.batch()) == 0) {
      state.dim = dim;
      state.inner = run / behind;
      return state;
    }
    behind = together;
  }
  return BatchState::mixed(); // The rows do not lie in one dimension.
}

BatchState firstDim(const BatchCall &call) {
  return Join(call).add(call.first(), leading(typeOf(call.first()), 1)).state();
}

BatchState otherDims(const BatchCall &call) {
  const Arg *dims = nullptr;
  for (llvm::StringRef name : {"dim", "dims", "dimension"})
    dims = dims ? dims : call.find(name);
  const auto named = namedDims(dims, typeOf(call.first()).rank());
  return Join(call).add(call.first(), reduced(named, /*kept=*/true)).state();
}

BatchState reduction(const BatchCall &call) {
  const Arg *keepDim = call.find("keepdim");
  const auto named = namedDims(call.find("dim"), typeOf(call.first()).rank());
  return Join(call)
      .add(call.first(), reduced(named, keepDim && call.args.boolean("keepdim")))
      .state();
}

BatchState convolution(const BatchCall &call) {
  const TensorType &input = call.args.tensor("input");
  const bool batched = input.rank() == call.args.tensor("weight").rank();
  return Join(call).add(call.args["input"], leading(input, batched ? 1 : 0)).state();
}

BatchState matmul(const BatchCall &call) {
  const Arg &a = call.args["self"], &b = call.args["other"];
  const int64_t rank = call.result().rank(), rankA = typeOf(a).rank(), rankB = typeOf(b).rank();
  const int64_t hasM = rankA > 1, hasN = rankB > 1, batches = rank - hasM - hasN;
  DimMap mapA(rankA, kCombined), mapB(rankB, kCombined);
  for (int64_t d = 0; d < rankA - 2; ++d)
    mapA[d] = batches - (rankA - 2) + d;
  for (int64_t d = 0; d < rankB - 2; ++d)
    mapB[d] = batches - (rankB - 2) + d;
  if (hasM)
    mapA[rankA - 2] = batches;
  if (hasN)
    mapB[rankB - 1] = rank - 1;
  return Join(call).add(a, mapA).add(b, mapB).state();
}

BatchState linear(const BatchCall &call) {
  const TensorType &input = call.args.tensor("input"), &weight = call.args.tensor("weight");
  DimMap features(weight.rank(), kCombined);
  if (weight.rank() > 1)
    features[0] = call.result().rank() - 1;
  Join join(call);
  join.add(call.args["input"], leading(input, input.rank() - 1)).add(call.args["weight"], features);
  if (call.args.isTensor("bias"))
    join.add(call.args["bias"], broadcast(call.args.tensor("bias"), call.result()));
  return join.state();
}

BatchState parts(const BatchCall &call) {
  const TensorType &self = call.args.tensor("self");
  const int64_t dim = dimOf(call, self);
  const bool dropped = call.result().rank() < self.rank();
  if (!dropped && call.result().sizes[dim] == self.sizes[dim]) // All of it.
    return call.state(call.first());
  return Join(call).add(call.args["self"], without(self, dim, dropped)).state();
}

BatchState scatter(const BatchCall &call) {
  const int64_t dim = dimOf(call, call.args.tensor("self"));
  Join join(call);
  for (const Arg &tensor : call.tensors())
    join.add(tensor, without(typeOf(tensor), dim));
  const BatchState state = join.state();
  if (state.kind ==
      BatchState::Rows) // Nothing broadcasts, so that a smaller index leaves rows out.
    for (const Arg &tensor : call.tensors())
      if (typeOf(tensor).sizes[state.dim] != call.result().sizes[state.dim])
        return BatchState::mixed();
  return state;
}

BatchState constant(const BatchCall &call) {
  for (auto [dim, size] : llvm::enumerate(call.result().sizes))
    if (size > 0 && size % call.batch() == 0)
      return BatchState::rows(static_cast<int64_t>(dim), size / call.batch());
  return {};
}

} // namespace cgc::ir::batch

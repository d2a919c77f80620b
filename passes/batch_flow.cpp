// BatchFlow, BatchDifference: how a graph depends on the rows and on the size of a batch.
#include "passes/batch_flow.h"

#include "ir/text/text.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

namespace cgc::passes {

using ir::Arg;
using ir::BatchState;
using ir::Node;
using ir::OpKind;
using ir::Value;

BatchFlow::BatchFlow(const ir::Graph &graph, llvm::ArrayRef<std::optional<int64_t>> inputDims,
                     int64_t batch) {
  for (auto [input, dim] : llvm::zip_equal(graph.inputs(), inputDims))
    states_[input] = dim ? BatchState::rows(*dim) : BatchState();
  for (const Node &node : graph) {
    if (node.kind() == ir::NodeKind::GetAttr)
      states_[node.result()] = {};
    if (node.kind() != ir::NodeKind::CallFunction)
      continue;
    const BatchState state =
        ir::batchState(node, batch, [&](const Value &value) { return states_.at(&value); });
    const Node *spoiler = nullptr;
    node.forEachInput(
        [&](const Value *value) { spoiler = spoiler ? spoiler : spoilers_.lookup(value); });
    for (const Value &result : node.results()) {
      states_[&result] = state;
      if (state.kind == BatchState::Mixed)
        spoilers_[&result] = spoiler ? spoiler : &node;
    }
  }
}

namespace {

/// The walk of findBatchDifference: the values of both graphs that correspond so far.
class Comparison {
public:
  Comparison(const BatchGraph &a, const BatchGraph &b) : a_(a), b_(b) {}

  std::optional<BatchDifference> run() {
    auto other = b_.graph->begin();
    for (const Node &node : *a_.graph) {
      if (other == b_.graph->end())
        return BatchDifference{&node, otherOps()};
      if (auto reason = compare(node, *other))
        return BatchDifference{&node, *std::move(reason)};
      ++other;
    }
    return std::nullopt; // Both have come to their outputs, the last nodes.
  }

private:
  std::string forBatches(const std::string &a, const std::string &b) const {
    return a + " for a batch of " + std::to_string(a_.batch) + ", and " + b + " for one of " +
           std::to_string(b_.batch);
  }
  std::string otherOps() const {
    return "the model runs other ops for a batch of " + std::to_string(a_.batch) +
           " than for one of " + std::to_string(b_.batch);
  }

  /// Whether both are equal, or the same multiple of the batch.
  bool scales(int64_t a, int64_t b) const {
    return a == b || (a > 0 && a_.batch > 0 && b_.batch > 0 && a % a_.batch == 0 &&
                      b % b_.batch == 0 && a / a_.batch == b / b_.batch);
  }
  bool scale(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) const {
    return a.size() == b.size() && llvm::all_of(llvm::zip_equal(a, b), [&](const auto &sizes) {
             return scales(std::get<0>(sizes), std::get<1>(sizes));
           });
  }

  /// Whether a part of dimension 'dim' is all of it.
  static bool isWhole(const Node &slice) {
    return slice.arg("self").value()->tensor().sizes == slice.result()->tensor().sizes;
  }

  /// Whether two slices are of a dimension whose size is not the same for all batches.
  static bool slicesBatch(const Node &slice, const Node &other) {
    const auto sizeOf = [](const Node &node) {
      const ir::TensorType &self = node.arg("self").value()->tensor();
      const int64_t dim = *node.arg("dim").asInt();
      return self.sizes[dim < 0 ? dim + self.rank() : dim];
    };
    return sizeOf(slice) != sizeOf(other);
  }

  /// Whether a slice ends at a number that large batches are past.
  static bool hasBound(const Node &slice) {
    const auto end = slice.arg("end").asInt();
    return end && *end >= 0 && *end != std::numeric_limits<int64_t>::max();
  }

  /// Whether the argument may differ: all that it changes is the size of a result, by the batch.
  bool maySize(const Node &node, const Node &other, llvm::StringRef name, const Arg &a,
               const Arg &b) const {
    if (node.is(OpKind::Slice))
      return name == "end" && isWhole(node) && isWhole(other) && slicesBatch(node, other) &&
             scales(*a.asInt(), *b.asInt());
    if (node.is(OpKind::Arange)) // The numbers of all rows.
      return name == "end" && a.asInt() == a_.batch && b.asInt() == b_.batch;
    const auto from = a.isList() ? a.asInts() : std::nullopt,
               to = b.isList() ? b.asInts() : std::nullopt;
    switch (node.op()) {
    case OpKind::View:
    case OpKind::Reshape:
    case OpKind::Unflatten:
    case OpKind::Expand:
    case OpKind::Repeat:
    case OpKind::Full:
      return from && to && scale(*from, *to);
    default:
      return false;
    }
  }

  /// Whether two arguments are equal, where values that correspond are.
  bool equal(const Arg &a, const Arg &b) const {
    if (a.isValue() && b.isValue())
      return values_.lookup(a.value()) == b.value();
    if (a.isList() && b.isList())
      return a.list().size() == b.list().size() &&
             llvm::all_of(llvm::zip_equal(a.list(), b.list()), [&](const auto &elements) {
               return equal(std::get<0>(elements), std::get<1>(elements));
             });
    return a == b;
  }

  /// Returns why two nodes do not correspond; nothing if they do.
  std::optional<std::string> compare(const Node &node, const Node &other) {
    const bool isCall = node.kind() == ir::NodeKind::CallFunction;
    if (node.kind() != other.kind() || node.target() != other.target() ||
        node.isInPlace() != other.isInPlace() || node.numResults() != other.numResults() ||
        node.args().size() != other.args().size() || (isCall && node.op() != other.op()))
      return otherOps();
    for (auto [i, a, b] : llvm::enumerate(node.args(), other.args())) {
      if (equal(a, b))
        continue;
      if (!isCall)
        return otherOps();
      const std::string &name = ir::opSchema(node.op()).args[i].name;
      if (!maySize(node, other, name, a, b))
        return "its argument '" + name + "' is " + forBatches(ir::argText(a), ir::argText(b));
    }
    if (isCall && node.is(OpKind::Slice) && node.arg("end") == other.arg("end") && hasBound(node) &&
        slicesBatch(node, other))
      return "it ends at row " + ir::argText(node.arg("end")) + ", which only some batches have";
    for (unsigned i = 0; i < node.numResults(); ++i) {
      const ir::TensorType &a = node.result(i)->tensor(), &b = other.result(i)->tensor();
      if (a.dtype != b.dtype || !scale(a.sizes, b.sizes))
        return "its result is " + forBatches(ir::toString(a), ir::toString(b));
      values_[node.result(i)] = other.result(i);
    }
    return std::nullopt;
  }

  const BatchGraph &a_, &b_;
  llvm::DenseMap<const Value *, const Value *> values_;
};

} // namespace

std::optional<BatchDifference> findBatchDifference(const BatchGraph &a, const BatchGraph &b) {
  return Comparison(a, b).run();
}

} // namespace cgc::passes

// order-rows: moves rolls and permutations of rows together, each as one lookup.
#include "passes/canonicalize/dce.h"
#include "passes/constants.h"
#include "passes/manager/registered_pass.h"
#include "passes/match.h"
#include "passes/preconditions.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

#include <numeric>
#include <set>

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::Dims;
using ir::Node;
using ir::OpKind;
using ir::TensorType;
using ir::Value;

/// A permutation of rows: row i is row order[i] of another matrix. Equal ones are one object.
using Order = const std::vector<int32_t> *;

/// The permutations of a graph.
class Orders {
public:
  Order add(std::vector<int32_t> rows) { return &*orders_.insert(std::move(rows)).first; }
  Order identity(int64_t rows) {
    std::vector<int32_t> all(rows);
    std::iota(all.begin(), all.end(), 0);
    return add(std::move(all));
  }
  static bool isIdentity(Order order) {
    for (size_t i = 0; i < order->size(); ++i)
      if ((*order)[i] != static_cast<int32_t>(i))
        return false;
    return true;
  }
  /// The order of rows that are first put in `first` and then in `second`.
  Order compose(Order first, Order second) {
    std::vector<int32_t> rows(second->size());
    llvm::transform(*second, rows.begin(), [&](int32_t row) { return (*first)[row]; });
    return add(std::move(rows));
  }
  Order inverse(Order order) {
    std::vector<int32_t> rows(order->size());
    for (size_t i = 0; i < rows.size(); ++i)
      rows[(*order)[i]] = static_cast<int32_t>(i);
    return add(std::move(rows));
  }

private:
  std::set<std::vector<int32_t>> orders_; // Its elements have stable addresses.
};

int64_t columnsOf(const Value *value) {
  return value->tensor().sizes.back();
}
int64_t rowBytesOf(const Value *value) {
  return columnsOf(value) * static_cast<int64_t>(dtypeSize(value->tensor().dtype));
}
int64_t rowsOf(const Value *value) {
  return value->tensor().numElements() / columnsOf(value);
}

/// Returns true if `value` is a dense matrix of floats, with any number of dimensions of rows.
bool isMatrix(const Value *value) {
  if (!value->isTensor())
    return false;
  const TensorType &type = value->tensor();
  return type.rank() >= 2 && isFloating(type.dtype) && type.isContiguous() &&
         type.numElements() > 0 && rowsOf(value) <= INT32_MAX;
}

/// Returns the row of a dense matrix with `columns` columns at each row of `view`, a view of all
/// its elements from the first; nullopt if `view` moves elements within rows.
std::optional<std::vector<int32_t>> rowsOfView(const TensorType &view, int64_t columns) {
  if (view.sizes.back() != columns || (columns > 1 && view.strides.back() != 1))
    return std::nullopt;
  std::vector<int32_t> rows = {0};
  for (int64_t dim = 0; dim + 1 < view.rank(); ++dim) {
    if (view.sizes[dim] > 1 && view.strides[dim] % columns != 0)
      return std::nullopt;
    std::vector<int32_t> next;
    next.reserve(rows.size() * view.sizes[dim]);
    for (const int32_t row : rows)
      for (int64_t i = 0; i < view.sizes[dim]; ++i)
        next.push_back(static_cast<int32_t>(row + i * (view.strides[dim] / columns)));
    rows = std::move(next);
  }
  return rows;
}

/// Returns the rows of the operand that the rows of a roll are; nullopt if it moves elements within
/// rows.
std::optional<std::vector<int32_t>> rowsOfRoll(const ir::RollOp &roll) {
  const TensorType &type = roll.self()->tensor();
  const Dims dims = roll.dims(), shifts = roll.shifts();
  Dims shift(type.sizes.size(), 0);
  if (dims.empty())
    return std::nullopt;
  for (size_t i = 0; i < dims.size(); ++i)
    shift[dims[i] < 0 ? dims[i] + type.rank() : dims[i]] += shifts[i];
  if (shift.back() % type.sizes.back() != 0)
    return std::nullopt;
  std::vector<int32_t> rows = {0};
  for (int64_t dim = 0; dim + 1 < type.rank(); ++dim) {
    const int64_t size = type.sizes[dim];
    std::vector<int32_t> next;
    next.reserve(rows.size() * size);
    for (const int32_t row : rows)
      for (int64_t i = 0; i < size; ++i)
        next.push_back(static_cast<int32_t>(row * size + ((i - shift[dim]) % size + size) % size));
    rows = std::move(next);
  }
  return rows;
}

/// An op whose result is rows of its operand in another order.
struct Move {
  Value *operand;
  std::vector<int32_t> rows;
};

std::optional<Move> moveOf(const Node &node) {
  Value *operand = nullptr;
  std::optional<std::vector<int32_t>> rows;
  if (const auto roll = ir::RollOp::of(node)) {
    operand = roll->self();
    if (!isMatrix(operand))
      return std::nullopt;
    rows = rowsOfRoll(*roll);
  } else if (const auto copy = ir::ContiguousOp::of(node)) {
    const Layout layout = layoutOf(copy->self());
    operand = layout.base;
    const TensorType &view = copy->self()->tensor();
    if (layout.offset != 0 || !isMatrix(operand) || view.rank() == 0 ||
        view.numElements() != operand->tensor().numElements())
      return std::nullopt;
    rows = rowsOfView(view, columnsOf(operand));
  } else if (const auto view = ir::ViewOp::of(node)) { // Other sizes of the same rows.
    operand = view->self();
    if (!isMatrix(operand) || columnsOf(operand) != view->result()->tensor().sizes.back())
      return std::nullopt;
    rows.emplace(rowsOf(operand));
    std::iota(rows->begin(), rows->end(), 0);
  }
  if (!rows || !isMatrix(node.result()) || columnsOf(node.result()) != columnsOf(operand))
    return std::nullopt;
  std::vector<bool> seen(rows->size());
  for (const int32_t row : *rows) { // An expanded view repeats rows.
    if (seen[row])
      return std::nullopt;
    seen[row] = true;
  }
  return Move{operand, std::move(*rows)};
}

/// Returns the operands of which row i alone, with numbers and vectors, determines row i of the
/// result; an empty list if there are none.
llvm::SmallVector<Value *, 2> rowOperands(const Node &node) {
  llvm::SmallVector<Value *, 2> operands;
  if (node.kind() != ir::NodeKind::CallFunction || node.numResults() != 1 ||
      !ir::hasTrait(node.op(), ir::kPure) || !isMatrix(node.result()))
    return {};
  const Dims &sizes = node.result()->tensor().sizes;
  const auto add = [&](Value *operand) {
    const bool fits = isMatrix(operand) && llvm::ArrayRef(operand->tensor().sizes).drop_back() ==
                                               llvm::ArrayRef(sizes).drop_back();
    if (fits && !llvm::is_contained(operands, operand))
      operands.push_back(operand);
    return fits;
  };
  if (ir::hasTrait(node.op(), ir::kPointwise)) {
    bool all = true;
    node.forEachInput([&](Value *input) {
      if (!input->isTensor() || input->tensor().rank() >= 2)
        all &= input->isTensor() && input->tensor().sizes == sizes && add(input);
    });
    return all ? operands : llvm::SmallVector<Value *, 2>();
  }
  for (const llvm::StringRef name : ir::rowArgs(node))
    if (const Arg &arg = node.arg(name); !arg.isNone() && !add(arg.value()))
      return {};
  return operands;
}

/// Rewrites one graph. Each matrix whose rows may be in another order than in the model is known by
/// its root: a matrix that an op without row operands computes, a sum of two matrices, or the
/// narrow result of a wide matrix. Roots are stored in an order of their own, and ops that process
/// rows independently follow their operand's.
class RowOrderer {
public:
  explicit RowOrderer(ir::Graph &graph) : graph_(graph), rewriter_(graph) {
    for (Node &node : graph)
      nodes_.push_back(&node);
  }

  void run() {
    for (Node *node : nodes_)
      classify(*node);
    for (size_t i = 0; i + 1 < nodes_.size(); ++i) {
      before_ = nodes_[i + 1];
      visit(*nodes_[i]);
    }
    for (const auto &[from, to] : replacements_)
      replaceAllUsesWith(rewriter_, from, to);
  }

private:
  using Operands = llvm::SmallVector<Value *, 2>;

  /// Row i of a matrix is row order[i] of the stored root, after the ops between both.
  struct Rows {
    Value *root;
    Order order;
  };

  /// Finds the ops that move or process rows, and the matrices that other ops read.
  void classify(const Node &node) {
    if (node.kind() == ir::NodeKind::CallFunction && node.numResults() == 1 &&
        !dependsOnParametersOnly(node.result())) {
      if (auto move = moveOf(node)) {
        needBase(move->operand);
        moves_.insert({node.result(), std::move(*move)});
        return;
      }
      Operands operands = isView(node) ? Operands() : rowOperands(node);
      if (operands.size() == 1 || operands.size() == 2) {
        llvm::for_each(operands, [&](Value *operand) { needBase(operand); });
        operands_.insert({node.result(), std::move(operands)});
        return;
      }
    }
    if (!isView(node))
      node.forEachInput([&](Value *input) { needed_.insert(layoutOf(input).base); });
  }
  /// The operand of an op on rows may be a view of a matrix with other rows.
  void needBase(Value *operand) {
    if (isView(*operand->node()) && !moves_.contains(operand))
      needed_.insert(layoutOf(operand).base);
  }

  void visit(Node &node) {
    if (node.numResults() != 1)
      return;
    Value *result = node.result();
    if (const auto move = moves_.find(result); move != moves_.end()) {
      const Rows from = rowsFor(move->second.operand);
      rows_[result] = {from.root, orders_.compose(from.order, orders_.add(move->second.rows))};
    } else if (const auto operands = operands_.find(result); operands != operands_.end()) {
      addRowOp(node, operands->second);
    } else {
      return;
    }
    if (!needed_.contains(result))
      return;
    Value *made = inOrder(result, rows_[result].order);
    if (made != result)
      replacements_.push_back({result, shaped(made, result->tensor().sizes)});
  }

  Rows rowsFor(Value *value) {
    if (const auto known = rows_.find(value); known != rows_.end())
      return known->second;
    stored_[value] = value;
    return rows_[value] = {value, orders_.identity(rowsOf(value))};
  }

  void addRowOp(Node &node, const Operands &operands) {
    Value *result = node.result();
    const Rows first = rowsFor(operands.front());
    if (operands.size() == 1 && rowBytesOf(result) >= rowBytesOf(first.root)) {
      rows_[result] = first;
      return;
    }
    // The order of the result: that of an operand into which the other one is brought in any case.
    Order order = first.order;
    if (operands.size() == 2) {
      const Rows second = rowsFor(operands.back());
      const Order other = orders_.compose(first.order, orders_.inverse(second.order));
      if (lookups_.contains({first.root, other}))
        order = second.order;
    }
    const Order back = orders_.inverse(order);
    Operands stored;
    for (Value *operand : operands)
      stored.push_back(inOrder(operand, orders_.compose(rowsFor(operand).order, back)));
    stored_[result] = repeated(node, operands, stored);
    rows_[result] = {result, order};
  }

  /// Returns the matrix `value`, with row i from row order[i] of its stored root, in any sizes with
  /// these columns.
  Value *inOrder(Value *value, Order order) {
    if (Value *stored = stored_.lookup(value))
      return Orders::isIdentity(order) ? stored : lookup(value, order);
    if (const auto move = moves_.find(value); move != moves_.end())
      return inOrder(move->second.operand, order);
    if (Value *made = made_.lookup({value, order}))
      return made;
    const Operands &operands = operands_.find(value)->second;
    Value *made = repeated(*value->node(), operands, {inOrder(operands.front(), order)});
    made_.insert({{value, order}, made});
    return made;
  }

  /// Returns the result of `node` with `others` for its operands, in any sizes with its columns.
  Value *repeated(Node &node, const Operands &operands, const Operands &others) {
    if (operands == others)
      return node.result();
    // The sizes of a linear, so that no view is between it and a sum.
    const auto linear =
        llvm::find_if(others, [](const Value *other) { return other->node()->is(OpKind::Linear); });
    const Dims sizes = (linear == others.end() ? others.front() : *linear)->tensor().sizes;
    std::vector<Arg> args = node.args().vec();
    for (Arg &arg : args)
      arg.mapValues([&](Value *value) {
        const auto *const found = llvm::find(operands, value);
        return Arg(found == operands.end() ? value
                                           : shaped(others[found - operands.begin()], sizes));
      });
    return rewriter_.create(node.op(), std::move(args), node, before_)->result();
  }

  /// Returns rows `order` of the stored `root`.
  Value *lookup(Value *root, Order order) {
    Value *&made = lookups_[{root, order}];
    if (made)
      return made;
    Value *stored = stored_.lookup(root);
    const Node &origin = *root->node();
    TensorType type = TensorType::dense(DType::I32, {static_cast<int64_t>(order->size())});
    const auto data = ir::TensorData::copyOf(
        type, {reinterpret_cast<const std::byte *>(order->data()), type.numBytes()});
    type.device = root->tensor().device;
    Value *rows =
        rewriter_
            .getAttr(findOrAddConstant(*graph_.owner(), "row_order", data), type, origin, before_)
            ->result();
    Value *table = shaped(stored, {rowsOf(stored), columnsOf(stored)});
    return made = rewriter_.create(OpKind::Embedding, {table, rows, -1, false}, origin, before_)
                      ->result();
  }

  Value *shaped(Value *value, const Dims &sizes) {
    if (value->tensor().sizes == sizes)
      return value;
    return rewriter_.create(OpKind::View, {value, Arg::ints(sizes)}, *value->node(), before_)
        ->result();
  }

  ir::Graph &graph_;
  ir::GraphRewriter rewriter_;
  Orders orders_;
  std::vector<Node *> nodes_;
  Node *before_ = nullptr; ///< New nodes stand before it.
  std::vector<std::pair<Value *, Value *>> replacements_;
  // Looked up, never iterated.
  llvm::DenseSet<const Value *> needed_;
  llvm::DenseMap<const Value *, Move> moves_;
  llvm::DenseMap<const Value *, Operands> operands_;
  llvm::DenseMap<const Value *, Rows> rows_;
  llvm::DenseMap<const Value *, Value *> stored_; ///< Of each root, in its order.
  llvm::DenseMap<std::pair<const Value *, Order>, Value *> made_, lookups_;
};

} // namespace

/// Makes one lookup of the rolls and copies that only move rows between two ops that need the order
/// of rows, as the windows of images do, and moves it up to where rows are narrow or already in
/// that order. What processes rows independently then follows: a residual is added in the order of
/// the windows. A graph without a roll of rows is left alone, as strided copies are as fast as
/// lookups. Requires a graph with types and without in-place ops.
struct OrderRowsPass {
  static constexpr const char *name = "order-rows";
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;
};

Result<Changed> OrderRowsPass::run(ir::Graph &graph, PassContext &context) const {
  CGC_TRY(requireTypes(graph));
  CGC_TRY(requireFunctional(graph));
  const bool rolls = llvm::any_of(
      graph, [](const Node &node) { return node.is(OpKind::Roll) && moveOf(node).has_value(); });
  if (!rolls || !graph.owner())
    return Changed::No;
  RowOrderer(graph).run();
  CGC_TRY(DcePass().run(graph, context).status());
  return Changed::Yes;
}

CGC_DEFINE_PASS(OrderRowsPass)

} // namespace cgc::passes

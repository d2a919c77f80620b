// Splitting of a batch: calls for parts of its rows in place of those for all of them.
#include "passes/train/batch_splitting.h"

#include "ir/rewriter.h"
#include "ir/text/text.h"
#include "passes/canonicalize/random_states.h"
#include "passes/constants.h"
#include "passes/preconditions.h"
#include "passes/train/row_states.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

using ir::Arg;
using ir::BatchState;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// Replaces each call that processes rows on their own by one for each micro-batch. The tail is the
/// calls from the first one on that combines rows.
class Splitting {
public:
  Splitting(ir::Graph &graph, int64_t batch, const BatchSplit &split, ir::Diagnostics &diagnostics)
      : split_(split), rows_(batch / split.count), batch_(batch), states_(graph, batch),
        diagnostics_(diagnostics), rewriter_(graph), streams_(firstFreeStream(graph)) {}

  Status run() {
    findTrained();
    CGC_TRY(checkTail());
    tail_ = &*llvm::find_if(rewriter_.graph(), [&](const Node &node) { return isMixed(node); });
    hoistShared();
    std::vector<Node *> split;
    std::vector<Value *> cut; // The rows that the tail reads.
    for (Node &node : rewriter_.graph()) {
      const bool isInput = node.kind() == ir::NodeKind::Placeholder && split_.isOverRanks;
      if (!isSplit(node) && !isInput)
        continue;
      if (!isInput)
        split.push_back(&node);
      for (Value &value : node.results())
        if (states_[&value].kind == BatchState::Rows &&
            llvm::any_of(value.users(), [&](const Node *user) { return isMixed(*user); }))
          cut.push_back(&value);
    }
    std::vector<Arg::List> parts(cut.size());
    if (split_.isOverRanks)
      shrinkInputs();
    for (int64_t part = 0; part < (split_.isOverRanks ? 1 : split_.count); ++part) {
      copies_.clear();
      slices_.clear();
      for (const Node *node : split)
        CGC_TRY(copy(*node, part));
      for (const auto &[value, all] : llvm::zip_equal(cut, parts))
        all.emplace_back(isInput(*value) ? value : copies_.at(value));
    }
    for (const Value *value : cut)
      CGC_TRY(checkJoin(value));
    if (split_.isOverRanks)
      gather(cut, parts);
    else
      for (const auto &[value, all] : llvm::zip_equal(cut, parts))
        join(value, std::move(all));
    for (Node *node : llvm::reverse(split))
      if (llvm::none_of(node->results(), [](const Value &value) { return value.hasUsers(); }))
        rewriter_.erase(node);
    if (const Node *refused = ir::reinferTypes(rewriter_.graph()))
      return refuse(*refused, "it does not take concatenated rows");
    return Status::ok();
  }

private:
  bool isMixed(const Node &node) const {
    return node.kind() == ir::NodeKind::Output ||
           (node.kind() == ir::NodeKind::CallFunction && states_[node].kind == BatchState::Mixed);
  }
  /// Whether each micro-batch has a call of its own in place of `node`.
  bool isSplit(const Node &node) const {
    return node.kind() == ir::NodeKind::CallFunction && !isMixed(node) &&
           states_[node].kind != BatchState::Shared;
  }

  /// Finds the values that depend on trained parameters and on no row.
  void findTrained() {
    for (const Node &node : rewriter_.graph()) {
      if (node.kind() == ir::NodeKind::Output || states_[node].kind != BatchState::Shared)
        continue;
      const Node *trained = nullptr; // A parameter, a matrix if there is one.
      if (readsState(node) &&
          rewriter_.graph().owner()->findParameter(node.target())->role == StateRole::Parameter)
        trained = &node;
      node.forEachInput([&](const Value *input) {
        const Node *other = trained_.lookup(input);
        trained = trained && (!other || !isMatrix(*other)) ? trained : other;
      });
      if (trained)
        for (const Value &result : node.results())
          trained_[&result] = trained;
    }
  }
  static bool isMatrix(const Node &read) { return read.result()->tensor().rank() > 1; }

  /// Refuses calls that apply a trained matrix to what combines rows.
  Status checkTail() {
    llvm::DenseMap<const Value *, const Node *> combined; // Where rows met. Never iterated.
    for (const Node &node : rewriter_.graph()) {
      if (node.kind() == ir::NodeKind::Output || !isMixed(node))
        continue;
      const Node *spoiler = nullptr, *matrix = nullptr;
      node.forEachInput([&](const Value *input) {
        spoiler = spoiler ? spoiler : combined.lookup(input);
        if (const Node *read = trained_.lookup(input);
            read && isMatrix(*read) && input->tensor().rank() > 1)
          matrix = read;
      });
      spoiler = spoiler ? spoiler : &node;
      for (const Value &result : node.results())
        combined[&result] = spoiler;
      if (matrix)
        return refuse(*spoiler, "it combines different rows, and the parameter '" +
                                    matrix->target() + "' is applied after it");
    }
    return Status::ok();
  }

  /// Reports that `node` is in the way. Names no op: the types of the inputs are not the cause.
  Status refuse(const Node &node, const std::string &reason) {
    ir::Diagnostic error;
    error.message =
        "cgc cannot split the batch into " + split_.parts + " at " +
        (node.kind() == ir::NodeKind::CallFunction ? ir::opName(node.op()).str()
                                                   : "'" + node.result()->name() + "'") +
        ": " + reason + "; compile the step without " + split_.option;
    error.loc = node.loc();
    error.subject = toString(node);
    diagnostics_.error(std::move(error));
    return diagnostics_.toStatus(Code::Unsupported);
  }

  /// Moves what depends on no row, row numbers included, before the tail.
  void hoistShared() {
    for (Node &node : llvm::make_early_inc_range(
             llvm::make_range(tail_->getIterator(), rewriter_.graph().end()))) {
      if (isMixed(node) || states_[node].kind == BatchState::Rows)
        continue;
      Node *moved = node.kind() == ir::NodeKind::GetAttr
                        ? rewriter_.getAttr(node.target(), node.result()->type(), node, tail_)
                        : rewriter_.create(node.op(), node.args().vec(), node, tail_);
      for (unsigned i = 0; i < node.numResults(); ++i) {
        states_.copy(node.result(i), moved->result(i));
        if (const Node *trained = trained_.lookup(node.result(i)))
          trained_[moved->result(i)] = trained;
        rewriter_.replaceAllUsesWith(node.result(i), moved->result(i));
      }
      rewriter_.erase(&node);
    }
  }

  /// Makes a call of micro-batch `part`.
  Status copy(const Node &node, int64_t part) {
    std::vector<Arg> args = node.args().vec();
    for (Arg &arg : args)
      arg.mapValues([&](Value *value) { return Arg(operand(node, value, part)); });
    if (shared_)
      return refuse(*shared_, "each rank would read other rows of its result");
    setSizes(node, part, args);
    Result<Node *> made = rewriter_.tryCreate(node.op(), std::move(args), node, tail_);
    if (!made.isOk())
      return refuse(node, "for fewer rows, " + made.status().message());
    for (unsigned i = 0; i < node.numResults(); ++i) {
      Value *copy = (*made)->result(i);
      ir::Dims sizes = node.result(i)->tensor().sizes;
      sizes[states_[node].dim] /= split_.count;
      if (copy->tensor().sizes != sizes)
        return refuse(node, "for fewer rows, its result is " + toString(copy->type()));
      copies_[node.result(i)] = copy;
    }
    return Status::ok();
  }

  /// What a call of micro-batch `part` reads where `node` reads `value`.
  Value *operand(const Node &node, Value *value, int64_t part) {
    const BatchState state = states_.use(node, value);
    if (state == states_[value] && state.kind != BatchState::Shared) {
      Value *&copy = copies_[value];
      return copy ? copy : copy = slice(value, state, part); // An input has no copy yet.
    }
    Value *whole = copyOfShared(value);
    if (state.kind == BatchState::Shared)
      return whole;
    Value *&rows = slices_[{value, state.dim}];
    return rows ? rows : rows = slice(whole, state, part);
  }

  /// The rows of micro-batch `part`.
  Value *slice(Value *value, const BatchState &state, int64_t part) {
    if (split_.isOverRanks) {
      if (isInput(*value))
        return value;
      if (value->tensor().strides[state.dim] != 0) // Else all rows are equal.
        shared_ = value->node();
    }
    const int64_t size = rows_ * state.inner;
    return rewriter_
        .create(OpKind::Slice, {value, state.dim, part * size, (part + 1) * size, 1},
                *value->node(), tail_)
        ->result();
  }

  /// A value that all rows share, computed again if its gradient is wanted: under autocast the
  /// gradients of its micro-batches are then added in f32, after the casts. `cse` merges the
  /// computations when there are gradients.
  Value *copyOfShared(Value *value) {
    Node &node = *value->node();
    if (node.kind() != ir::NodeKind::CallFunction || !trained_.contains(value))
      return value;
    if (Value *known = copies_.lookup(value))
      return known;
    std::vector<Arg> args = node.args().vec();
    for (Arg &arg : args)
      arg.mapValues([&](Value *input) { return Arg(copyOfShared(input)); });
    Node *made = rewriter_.create(node.op(), std::move(args), node, tail_);
    for (unsigned i = 0; i < node.numResults(); ++i)
      copies_[node.result(i)] = made->result(i);
    return copies_.at(value);
  }

  /// Adapts the arguments of a call that have the size of the batch, and the stream of a dropout.
  void setSizes(const Node &node, int64_t part, std::vector<Arg> &args) const {
    const ir::Schema &schema = ir::opSchema(node.op());
    const auto setSize = [&](llvm::StringRef name, int64_t dim) {
      Arg &arg = args[*schema.find(name)];
      ir::Dims sizes = *arg.asInts();
      if (dim >= 0 && dim < static_cast<int64_t>(sizes.size()) && sizes[dim] > 0)
        sizes[dim] /= split_.count;
      arg = Arg::ints(sizes);
    };
    const int64_t dim = states_[node].dim;
    switch (node.op()) {
    case OpKind::Arange:
      args[*schema.find("end")] = rows_;
      break;
    case OpKind::View:
    case OpKind::Expand:
      setSize("size", dim);
      break;
    case OpKind::Reshape:
      setSize("shape", dim);
      break;
    case OpKind::Unflatten: {
      const int64_t first = node.arg("dim").as<int64_t>();
      setSize("sizes",
              dim - (first < 0 ? first + node.arg("self").value()->tensor().rank() : first));
      break;
    }
    case OpKind::CgcDropout: {
      Arg &stream = args[*schema.find("stream")];
      stream = stream.as<int64_t>() + part * streams_;
      break;
    }
    default:
      break;
    }
  }

  /// Refuses a value of which the parts do not make the whole, one after another.
  Status checkJoin(const Value *value) {
    const BatchState state = states_[value];
    const int64_t rows = isInput(*value) ? value->tensor().sizes[0] * split_.count
                                         : value->tensor().sizes[state.dim];
    if (rows != state.inner * batch_)
      return refuse(*value->node(), "the rows of its result do not lie one after another");
    return Status::ok();
  }

  /// Lets the tail read the results `parts` of the micro-batches in place of `value`.
  void join(Value *value, Arg::List parts) {
    Node *cat = rewriter_.create(OpKind::Cat, {std::move(parts), states_[value].dim},
                                 *value->node(), tail_);
    rewriter_.replaceUsesAfter(cat, value, cat->result());
  }

  /// Lets the tail read the values `cut` of all ranks, of which `parts` are those of this rank.
  void gather(llvm::ArrayRef<Value *> cut, llvm::ArrayRef<Arg::List> parts) {
    const auto withRowsFirst = [&](const Value *value, Value *rows) {
      const int64_t dim = states_[value].dim;
      return dim == 0
                 ? rows
                 : rewriter_
                       .create(OpKind::Transpose, {rows, int64_t{0}, dim}, *value->node(), tail_)
                       ->result();
    };
    if (cut.empty())
      return;
    Arg::List own;
    for (const auto &[value, part] : llvm::zip_equal(cut, parts))
      own.emplace_back(withRowsFirst(value, part.front().value()));
    Node *all = rewriter_.create(OpKind::CgcAllGather, {std::move(own), split_.count},
                                 *cut.front()->node(), tail_);
    for (const auto &[i, value] : llvm::enumerate(cut)) {
      Value *gathered = withRowsFirst(value, all->result(static_cast<unsigned>(i)));
      rewriter_.replaceUsesAfter(gathered->node(), value, gathered);
    }
  }

  static bool isInput(const Value &value) {
    return value.node()->kind() == ir::NodeKind::Placeholder;
  }

  /// Gives the inputs with rows those of one rank.
  void shrinkInputs() {
    for (Value *input : rewriter_.graph().inputs()) {
      if (states_[input].kind != BatchState::Rows)
        continue;
      ir::TensorType type = input->tensor();
      type.sizes[0] = rows_;
      input->setType(std::move(type));
    }
  }

  const BatchSplit &split_;
  const int64_t rows_, batch_; ///< Rows of a part, and of all.
  RowStates states_;
  ir::Diagnostics &diagnostics_;
  ir::GraphRewriter rewriter_;
  const int64_t streams_;        ///< Of dropout in a micro-batch.
  const Node *shared_ = nullptr; ///< Of which each rank would read other rows. Null: of none.
  Node *tail_ = nullptr; ///< The first call that combines rows, before which copies are inserted.
  /// The parameters that values depend on. Looked up, never iterated.
  llvm::DenseMap<const Value *, const Node *> trained_;
  // Of the micro-batch that is being copied. Looked up, never iterated.
  llvm::DenseMap<const Value *, Value *> copies_;
  llvm::DenseMap<std::pair<const Value *, int64_t>, Value *> slices_; ///< By dimension.
};

/// The size of dimension 0 of all inputs that have one; inputs of size 1 there are shared.
Result<int64_t> batchOf(const ir::Graph &graph, const BatchSplit &split) {
  const Value *first = nullptr;
  for (const Value *input : graph.inputs()) {
    const ir::TensorType &type = input->tensor();
    if (type.rank() == 0 || type.sizes[0] == 1)
      continue;
    if (first && type.sizes[0] != first->tensor().sizes[0])
      return Status(Code::Usage, "dimension 0 is " + std::to_string(first->tensor().sizes[0]) +
                                     " in '" + first->name() + "' and " +
                                     std::to_string(type.sizes[0]) + " in '" + input->name() +
                                     "', so that there is no batch to split; compile the "
                                     "step without " +
                                     split.option);
    first = first ? first : input;
  }
  return first ? first->tensor().sizes[0] : 1;
}

} // namespace

Result<int64_t> takeCount(PassOptions &options, llvm::StringRef pass, int64_t most) {
  CGC_ASSIGN_OR_RETURN(const auto count, options.takeNumber("count"));
  const auto parts = static_cast<int64_t>(count.value_or(2));
  if (parts < 2 || parts > most)
    return Status(Code::Usage, "option 'count' of " + pass.str() + " is " + std::to_string(parts) +
                                   ", and has to be from 2 to " + std::to_string(most));
  return parts;
}

Status splitBatch(ir::Graph &graph, const BatchSplit &split, PassContext &context) {
  CGC_TRY(requireTypes(graph));
  CGC_TRY(requireFunctional(graph));
  CGC_ASSIGN_OR_RETURN(const int64_t batch, batchOf(graph, split));
  if (batch == 0 || batch % split.count != 0)
    return {Code::Usage, "a batch of " + std::to_string(batch) + " is not divisible into " +
                             std::to_string(split.count) + " " + split.parts +
                             "; change the batch or their number"};
  ir::Diagnostics own;
  Splitting splitting(graph, batch, split, context.diagnostics ? *context.diagnostics : own);
  return splitting.run();
}

} // namespace cgc::passes

// recompute: computes activations again in the backward pass instead of keeping them.
#include "ir/op_def.h"
#include "passes/manager/registered_pass.h"
#include "passes/match.h"
#include "passes/preconditions.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

namespace cgc::passes {

/// Of the values of the forward pass that the backward pass reads, computes some again before their
/// first use there, so that their memory is free between the passes. The forward pass is what comes
/// before the loss, the first output.
///
/// level=cheap: the results of pointwise ops and layer norms whose operands are kept anyway.
/// level=blocks: all values within a block, a module in a list of modules such as
/// `transformer.resblocks.3`, and within one micro-batch; the values that go from block to block
/// are kept.
/// level=micro-batches: the same with the micro-batches of the pass `micro-batches` as blocks, what
/// depends on a range of the rows of the inputs and on no other rows.
/// Random numbers are functions of states, so that both times are equal.
struct RecomputePass {
  static constexpr const char *name = "recompute";
  enum class Level : uint8_t { Cheap, Blocks, MicroBatches };
  /// Options: level, cheap (the default), blocks or micro-batches; least-bytes, the size of the
  /// smallest value to compute again (default 1 MiB).
  static Result<RecomputePass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  Level level = Level::Cheap;
  size_t leastBytes = 1 << 20;
};

namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

/// The path of the node's module up to the first index; empty if it has none.
llvm::StringRef modulePrefix(const Node &node) {
  const llvm::StringRef path = node.loc().module;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const llvm::StringRef part = path.slice(begin, end);
    if (!part.empty() && llvm::all_of(part, llvm::isDigit))
      return path.take_front(end);
    begin = end + 1;
  }
  return "";
}

/// Whether the node takes a range of the rows of an input.
bool takesRows(const Node &node) {
  const auto slice = ir::SliceOp::of(node);
  return slice && slice->dim() == 0 && slice->self()->node()->kind() == ir::NodeKind::Placeholder;
}

class Recomputation {
public:
  Recomputation(ir::Graph &graph, const RecomputePass &options, Node &loss)
      : options_(options), rewriter_(graph), loss_(loss) {}

  Changed run() {
    std::vector<Node *> forward;
    for (Node &node : rewriter_.graph()) {
      if (node.kind() == ir::NodeKind::CallFunction)
        forward.push_back(&node);
      findMicroBatch(node);
      if (&node == &loss_)
        break;
    }
    std::vector<Value *> values;
    for (Node *node : forward)
      for (Value &value : node->results())
        if (value.isTensor() && isLarge(value) && isRepeated(value))
          if (Node *user = firstBackwardUser(value)) {
            values.push_back(&value);
            Node *&first = blocks_[groupOf(*node)].first;
            if (!first || user->isBefore(*first))
              first = user;
          }
    for (Value *value : values)
      if (isRepeated(*value))
        repeat(*value);
    return rewriter_.changed() ? Changed::Yes : Changed::No;
  }

private:
  struct Block {
    Node *first = nullptr; ///< The first user of its values in the backward pass.
    llvm::DenseMap<const Value *, Value *> again; ///< Looked up, never iterated.
  };

  bool isCheapLevel() const { return options_.level == RecomputePass::Level::Cheap; }

  /// Finds the micro-batch of a node whose operands have been visited.
  void findMicroBatch(const Node &node) {
    std::optional<std::string> found;
    if (takesRows(node))
      found = std::to_string(ir::SliceOp::of(node)->start().value_or(0));
    node.forEachInput([&](const Value *input) {
      const auto other = microBatches_.find(input->node());
      if (other != microBatches_.end())
        found = found.value_or(other->second) == other->second ? other->second : "";
    });
    if (found)
      microBatches_[&node] = *found;
  }

  /// The block of a node; empty if it is in none.
  std::string blockOf(const Node &node) const {
    std::string microBatch = microBatches_.lookup(&node);
    if (options_.level == RecomputePass::Level::MicroBatches)
      return microBatch;
    const llvm::StringRef module = modulePrefix(node);
    return module.empty() ? "" : microBatch + ":" + module.str();
  }

  bool isLarge(const Value &value) const {
    const ir::TensorType &type = value.tensor();
    return static_cast<uint64_t>(type.numElements()) * dtypeSize(type.dtype) >= options_.leastBytes;
  }

  static bool isOutput(const Value &value) {
    return value.hasUsers() && value.users().back()->kind() == ir::NodeKind::Output;
  }

  /// The first user of `value` in the backward pass; null if there is none.
  Node *firstBackwardUser(const Value &value) const {
    for (Node *user : value.users())
      if (loss_.isBefore(*user) && user->kind() != ir::NodeKind::Output)
        return user;
    return nullptr;
  }

  /// Whether the value is in memory during the backward pass in any case.
  bool isKept(const Value &value) const {
    const Node &node = *value.node();
    if (node.kind() != ir::NodeKind::CallFunction || isOutput(value) || firstBackwardUser(value))
      return true;
    return isView(node) && isKept(*ir::aliasedArg(node).value());
  }

  /// Whether the value is computed again. Outputs are kept.
  bool isRepeated(const Value &value) const {
    const Node &node = *value.node();
    if (node.kind() != ir::NodeKind::CallFunction || !ir::hasTrait(node.op(), ir::kPure) ||
        isOutput(value))
      return false;
    if (isView(node))
      return isRepeated(*ir::aliasedArg(node).value());
    if (isCheapLevel())
      return isCheap(value);
    const std::string block = blockOf(node);
    return !block.empty() && llvm::all_of(node.results(), [&](const Value &result) {
      return staysInBlock(result, block);
    });
  }

  /// Whether no other block of the forward pass reads the value, directly or through views.
  bool staysInBlock(const Value &value, llvm::StringRef block) const {
    return llvm::all_of(value.users(), [&](Node *user) {
      if (loss_.isBefore(*user))
        return true;
      if (blockOf(*user) != block)
        return false;
      return !isView(*user) || llvm::all_of(user->results(), [&](const Value &view) {
        return staysInBlock(view, block);
      });
    });
  }

  /// Whether the value is the result of a pointwise op or the normalized rows of a layer norm, and
  /// all that it depends on is kept.
  bool isCheap(const Value &value) const {
    Node &node = *value.node();
    const bool isNorm = node.is(OpKind::CgcLayerNormStatistics);
    if (isNorm ? value.index() != 0 : !ir::hasTrait(node.op(), ir::kPointwise))
      return false;
    bool kept = true;
    for (const Arg &arg : argsOf(node))
      arg.forEachValue([&](const Value *input) { kept &= isKept(*input); });
    return kept;
  }

  /// The arguments of the second computation: a layer norm with an addend normalizes the sum, which
  /// the backward pass reads.
  std::vector<Arg> argsOf(Node &node) const {
    std::vector<Arg> args = node.args().vec();
    if (const auto norm = ir::CgcLayerNormStatisticsOp::of(node);
        norm && norm->addend() && isCheapLevel()) {
      args.front() = node.result(3);
      args.back() = Arg();
    }
    return args;
  }

  /// What is computed again together: a block, or a node.
  std::string groupOf(const Node &node) const {
    return isCheapLevel() ? node.result()->name() : blockOf(node);
  }

  /// Makes the uses of `value` in the backward pass those of a second computation.
  void repeat(Value &value) {
    Block &block = blocks_[groupOf(*value.node())];
    rewriter_.replaceUsesAfter(&loss_, &value, repeated(&value, block));
  }

  /// `value` before the first use of its block: computed again if isRepeated(), else itself.
  Value *repeated(Value *value, Block &block) {
    if (!isRepeated(*value))
      return value;
    if (Value *known = block.again.lookup(value))
      return known;
    Node &node = *value->node();
    std::vector<Arg> args = argsOf(node);
    for (Arg &arg : args)
      arg.mapValues([&](Value *input) { return Arg(repeated(input, block)); });
    Node *copy = rewriter_.create(node.op(), std::move(args), node, block.first);
    for (unsigned i = 0; i < copy->numResults(); ++i)
      block.again[node.result(i)] = copy->result(i);
    return copy->result(value->index());
  }

  const RecomputePass &options_;
  ir::GraphRewriter rewriter_;
  Node &loss_;
  llvm::StringMap<Block> blocks_; ///< Looked up, never iterated.
  /// The first row of each node's micro-batch; empty if it combines several. Looked up, never
  /// iterated.
  llvm::DenseMap<const Node *, std::string> microBatches_;
};

} // namespace

Result<RecomputePass> RecomputePass::create(PassOptions &options) {
  RecomputePass pass;
  CGC_ASSIGN_OR_RETURN(const auto level,
                       options.takeOneOf("level", {"cheap", "blocks", "micro-batches"}));
  pass.level = level == "blocks"          ? Level::Blocks
               : level == "micro-batches" ? Level::MicroBatches
                                          : Level::Cheap;
  CGC_ASSIGN_OR_RETURN(const auto least, options.takeNumber("least-bytes"));
  pass.leastBytes = least.value_or(pass.leastBytes);
  return pass;
}

Result<Changed> RecomputePass::run(ir::Graph &graph, PassContext &) const {
  CGC_TRY(requireTypes(graph));
  CGC_TRY(requireFunctional(graph));
  if (graph.outputs().empty() || !graph.outputs()[0].isValue())
    return Status(Code::Usage, "the graph has no loss, which is its first output: run the pass "
                               "'differentiate' first");
  return Recomputation(graph, *this, *graph.outputs()[0].value()->node()).run();
}

CGC_DEFINE_PASS(RecomputePass)

} // namespace cgc::passes

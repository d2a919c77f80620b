// shard-updates: moments and averages that the ranks divide among themselves.
#include "passes/manager/registered_pass.h"
#include "passes/preconditions.h"
#include "passes/train/update_parts.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

#include <map>

namespace cgc::passes {

/// For a training on several ranks, after `join-collectives`: the moments and the average of each
/// parameter go into a shard, which one of the ranks holds. Calls that update them become one call
/// for each shard, after which cgc.broadcast sends the parameters and their copies in 16 bits to
/// the other ranks. Means of gradients that nothing else reads are left to the rank with the shard.
/// The shards follow the order in which gradients are reduced. One of several parameters has at
/// most one of `shards` equal parts of all elements, so that they balance. The first bucket
/// decides, and the others follow, since a plan has one set of states. Parameters of other dtypes
/// than f32, whose update is not one kernel, stay as they are. Usage if nothing could be divided.
struct ShardUpdatesPass {
  static constexpr const char *name = "shard-updates";
  static constexpr bool isRequired = true;
  /// Option: shards, at least 1.
  static Result<ShardUpdatesPass> create(PassOptions &options);
  Result<Changed> run(ir::Graph &graph, PassContext &context) const;

  uint64_t shards = 32;
};

namespace {

using ir::Arg;
using ir::Node;
using ir::OpKind;
using ir::Value;

constexpr llvm::StringRef kMean = "mean"; ///< The reduction of gradients.

/// The lists of the states that an update divides; none if it has no such states.
llvm::SmallVector<const Arg::List *> dividedStates(const Node &node) {
  llvm::SmallVector<llvm::StringRef> names;
  if (node.is(OpKind::CgcAdam))
    names = {"exp_avgs", "exp_avg_sqs"};
  else if (node.is(OpKind::CgcSgd))
    names = {"momenta"};
  else if (node.is(OpKind::CgcEma))
    names = {"averages"};
  llvm::SmallVector<const Arg::List *> lists;
  for (const llvm::StringRef name : names)
    if (const Arg::List &states = node.arg(name).list();
        !states.empty() && llvm::all_of(states, [](const Arg &state) {
          return state.value()->node()->kind() == ir::NodeKind::GetAttr &&
                 state.value()->tensor().dtype == DType::F32;
        }))
      lists.push_back(&states);
  return lists;
}

/// The path of a state, "fc.weight:exp_avg".
llvm::StringRef pathOf(const Arg &state) {
  return state.value()->node()->target();
}

/// Divides the states of one graph.
class Sharding {
public:
  Sharding(ir::Graph &graph, uint64_t shards) : graph_(graph), rewriter_(graph), shards_(shards) {}

  Result<Changed> run() {
    std::vector<Node *> updates;
    for (Node &node : graph_)
      if (!dividedStates(node).empty())
        updates.push_back(&node);
    if (updates.empty())
      return Status(Code::Usage,
                    "the optimizer keeps no moments and no averages in f32 that ranks could "
                    "divide; give it some, or leave --shard-optimizer out");
    findShards(*graph_.owner());
    llvm::StringMap<int64_t> sizes; // Of each parameter once.
    for (const Node *update : updates)
      for (const Arg &state : *dividedStates(*update).front())
        sizes[parameterOf(state)] = state.value()->tensor().numElements();
    for (const auto &entry : sizes)
      elements_ += static_cast<uint64_t>(entry.second);
    for (Node *update : updates)
      shard(*update);
    eraseUnused();
    return Changed::Yes;
  }

private:
  static llvm::StringRef parameterOf(const Arg &state) { return pathOf(state).rsplit(':').first; }

  /// Notes the shards that an earlier bucket has made.
  void findShards(const ir::Module &module) {
    for (const ir::Parameter &parameter : module.parameters())
      if (parameter.shard)
        next_ = std::max(next_, *parameter.shard + 1);
    for (const auto &submodule : module.submodules())
      findShards(*submodule);
  }

  /// The shard of each state of `update`: that of its parameter, or the one that is being filled.
  llvm::MapVector<uint32_t, UpdatePart> partsOf(const Node &update) {
    const auto lists = dividedStates(update);
    UpdatePart order;
    if (update.is(OpKind::CgcEma))
      for (size_t i = 0; i < lists.front()->size(); ++i)
        order.push_back(i);
    else
      order = inOrderOfGradients(update);
    llvm::MapVector<uint32_t, UpdatePart> parts;
    uint64_t filled = elements_ + 1; // Of the last shard: a call begins another one.
    for (const size_t i : order) {
      const Arg &state = (*lists.front())[i];
      const auto [known, isNew] = shardOf_.try_emplace(parameterOf(state).str(), next_);
      if (const auto &shard = graph_.owner()->findParameter(pathOf(state))->shard) {
        known->second = *shard;
      } else if (isNew) {
        const auto own = static_cast<uint64_t>(state.value()->tensor().numElements());
        if ((filled + own) * shards_ > elements_) {
          ++next_;
          filled = 0;
        }
        known->second = next_ - 1;
        filled += own;
      }
      parts[known->second].push_back(i);
      for (const Arg::List *list : lists)
        graph_.owner()->setShard(pathOf((*list)[i]), known->second);
    }
    return parts;
  }

  /// Makes calls for the shards of `update`, and sends what the other ranks need of them.
  void shard(Node &update) {
    const auto shards = partsOf(update);
    const bool isEma = update.is(OpKind::CgcEma),
               hasCopies = !isEma && !update.arg("copy").isNone();
    std::vector<UpdatePart> parts;
    for (const auto &[shard, part] : shards)
      parts.push_back(part);
    const std::vector<Node *> calls = splitUpdate(update, parts, rewriter_);
    if (isEma)
      return;
    for (const auto &[call, shard] : llvm::zip_equal(calls, llvm::make_first_range(shards))) {
      reduceToOwner(*call, shard);
      send(*call, hasCopies, shard);
    }
  }

  /// Leaves means of gradients that only `call` reads to the rank with its shard.
  void reduceToOwner(Node &call, uint32_t shard) {
    Arg::List operands;
    std::vector<Value *> means;
    Node *last = nullptr; // Of the reductions so far, each of which follows its operands.
    for (const Arg &gradient : call.arg("gradients").list()) {
      Value *const mean = gradient.value();
      Node *const node = mean->node();
      if (!node->is(OpKind::CgcAllReduce) || !node->arg("shard").isNone() || !mean->hasOneUse() ||
          node->arg("reduction").as<std::string>() != kMean)
        continue;
      operands.push_back(node->arg("tensors").list()[mean->index()]);
      means.push_back(mean);
      if (!last || last->isBefore(*node))
        last = node;
    }
    if (means.empty())
      return;
    Node *const reduced = rewriter_.create(
        OpKind::CgcAllReduce, {std::move(operands), kMean.str(), static_cast<int64_t>(shard)},
        *last, last);
    for (const auto &[i, mean] : llvm::enumerate(means))
      rewriter_.replaceAllUsesWith(mean, reduced->result(static_cast<unsigned>(i)));
  }

  /// Erases the tensors of reductions that all calls of updates have left.
  void eraseUnused() {
    for (Node &node : llvm::make_early_inc_range(graph_)) {
      if (!node.is(OpKind::CgcAllReduce) ||
          llvm::none_of(node.results(), [](const Value &result) { return !result.hasUsers(); }))
        continue;
      Arg::List operands;
      std::vector<Value *> used;
      for (Value &result : node.results())
        if (result.hasUsers()) {
          operands.push_back(node.arg("tensors").list()[result.index()]);
          used.push_back(&result);
        }
      if (!used.empty()) {
        Node *const rest = rewriter_.create(
            OpKind::CgcAllReduce, {std::move(operands), node.arg("reduction"), node.arg("shard")},
            node, &node);
        for (const auto &[i, result] : llvm::enumerate(used))
          rewriter_.replaceAllUsesWith(result, rest->result(static_cast<unsigned>(i)));
      }
      rewriter_.erase(&node);
    }
  }

  void send(Node &call, bool hasCopies, uint32_t shard) {
    const auto count = static_cast<unsigned>(call.args().front().list().size());
    Arg::List sent;
    for (unsigned i = 0; i < call.numResults(); ++i)
      if (i < count || (hasCopies && i >= call.numResults() - count))
        sent.emplace_back(call.result(i));
    const Arg::List results = sent;
    Node *const broadcast =
        rewriter_.create(OpKind::CgcBroadcast, {std::move(sent), static_cast<int64_t>(shard)}, call,
                         &*std::next(call.getIterator()));
    for (const auto &[i, result] : llvm::enumerate(results))
      rewriter_.replaceUsesAfter(broadcast, result.value(),
                                 broadcast->result(static_cast<unsigned>(i)));
  }

  ir::Graph &graph_;
  ir::GraphRewriter rewriter_;
  const uint64_t shards_;
  uint64_t elements_ = 0;                   ///< Of all parameters.
  uint32_t next_ = 0;                       ///< The number of shards so far.
  std::map<std::string, uint32_t> shardOf_; ///< By the path of the parameter.
};

} // namespace

Result<ShardUpdatesPass> ShardUpdatesPass::create(PassOptions &options) {
  ShardUpdatesPass pass;
  CGC_TRY(options.takePositive("shards", pass.shards));
  return pass;
}

Result<Changed> ShardUpdatesPass::run(ir::Graph &graph, PassContext &) const {
  CGC_TRY(requireTypes(graph));
  CGC_TRY(requireFunctional(graph));
  return Sharding(graph, shards).run();
}

CGC_DEFINE_PASS(ShardUpdatesPass)

} // namespace cgc::passes

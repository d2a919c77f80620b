// findStridesRefused: re-runs type inference with other strides for one value.
#include "passes/match.h"

#include "ir/text/text.h"

#include "llvm/ADT/DenseMap.h"

#include <set>

namespace cgc::passes {
namespace {

/// Hypothetical types of values; values without an entry keep theirs.
class Trial {
public:
  Trial(const ir::Value *value, const ir::TensorType &type) { set(value, type); }

  /// Returns the first node that does not accept the new types of its arguments; null if all do.
  /// Visits only nodes with such an argument, in graph order.
  const ir::Node *run() {
    while (!pending_.empty()) {
      const ir::Node *node = *pending_.begin();
      pending_.erase(pending_.begin());
      if (!step(*node))
        return node;
    }
    return nullptr;
  }

private:
  struct IsBefore {
    bool operator()(const ir::Node *a, const ir::Node *b) const { return a->isBefore(*b); }
  };

  /// Returns whether `node` accepts the new types, and records those of its results.
  bool step(const ir::Node &node) {
    if (node.kind() != ir::NodeKind::CallFunction)
      return false;
    const ir::Schema &schema = ir::opSchema(node.op());
    std::vector<ir::Arg> args = node.args().vec();
    for (unsigned i = 0; i < args.size(); ++i) {
      bool accepted = true;
      args[i].mapValues([&](ir::Value *value) {
        ir::Value *standIn = standIns_.lookup(value);
        if (!standIn)
          return ir::Arg(value);
        accepted &= ir::hasTrait(node.op(), ir::kView) ||
                    ir::readsStrides(node, schema.args[i].name, standIn->tensor());
        return ir::Arg(standIn);
      });
      if (!accepted)
        return false;
    }
    DeviceKind device = node.result()->tensor().device;
    auto before = ir::inferResults(node.op(), node.args(), device);
    auto after = ir::inferResults(node.op(), args, device);
    if (!before || !after || before->size() != after->size())
      return false;
    for (unsigned i = 0; i < node.numResults(); ++i) {
      const ir::Inferred &was = (*before)[i], &is = (*after)[i];
      if (was.viewOffset && !is.viewOffset) // A view would become a copy.
        return false;
      if (was.type.sizes != is.type.sizes || was.type.dtype != is.type.dtype)
        return false;
      if (!sameLayout(was.type, is.type))
        set(node.result(i), is.type);
    }
    return true;
  }

  void set(const ir::Value *value, ir::TensorType type) {
    standIns_[value] = scratch_.placeholder("", std::move(type), ir::Loc::unknown())->result();
    pending_.insert(value->users().begin(), value->users().end());
  }

  ir::Graph scratch_{"trial"};
  llvm::DenseMap<const ir::Value *, ir::Value *> standIns_; ///< Looked up, never iterated.
  std::set<const ir::Node *, IsBefore> pending_;            ///< Nodes to visit.
};

} // namespace

const ir::Node *findStridesRefused(const ir::Value *value, const ir::TensorType &type) {
  return sameLayout(value->tensor(), type) ? nullptr : Trial(value, type).run();
}

std::string stridesRefused(const ir::Node &reader, const ir::TensorType &type) {
  return "the result would be " + toString(type) + ", and " +
         (reader.kind() == ir::NodeKind::Output
              ? "the graph returns it"
              : "a reader cannot take these strides: " + ir::toString(reader));
}

} // namespace cgc::passes

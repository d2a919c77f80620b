// acceptsStrides: re-runs type inference with other strides for one value.
#include "passes/match.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace cgc::passes {
namespace {

/// Hypothetical types of values; values without an entry keep theirs.
class Trial {
public:
  Trial(ir::Value *value, const ir::TensorType &type) { set(value, type); }

  /// Returns whether `node` accepts the new types, and records those of its results.
  bool step(ir::Node &node) {
    bool touched = false;
    std::vector<ir::Arg> args = node.args().vec();
    for (unsigned i = 0; i < args.size(); ++i) {
      bool accepted = true;
      args[i].mapValues([&](ir::Value *value) {
        ir::Value *standIn = standIns_.lookup(value);
        if (!standIn)
          return ir::Arg(value);
        touched = true;
        accepted &= node.kind() == ir::NodeKind::CallFunction &&
                    (ir::hasTrait(node.op(), ir::kView) ||
                     ir::readsStrides(node.op(), node.args(), i, standIn->tensor()));
        return ir::Arg(standIn);
      });
      if (!accepted)
        return false;
    }
    if (!touched)
      return true;
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

private:
  void set(ir::Value *value, ir::TensorType type) {
    standIns_[value] = scratch_.placeholder("", std::move(type), ir::Loc::unknown())->result();
  }

  ir::Graph scratch_{"trial"};
  llvm::DenseMap<const ir::Value *, ir::Value *> standIns_; ///< Looked up, never iterated.
};

} // namespace

bool acceptsStrides(ir::Value *value, const ir::TensorType &type) {
  if (sameLayout(value->tensor(), type))
    return true;
  Trial trial(value, type);
  ir::Graph &graph = *value->node()->graph();
  return llvm::all_of(llvm::make_range(std::next(value->node()->getIterator()), graph.end()),
                      [&](ir::Node &node) { return trial.step(node); });
}

} // namespace cgc::passes

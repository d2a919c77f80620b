// Specializer: the graph walk of the specialize pass. Types and host values are in specialize.cpp,
// branches in specialize_branches.cpp, calls of the host in specialize_host_calls.cpp, in-place ops
// in specialize_in_place.cpp, other errors in specialize_reports.cpp.
#pragma once

#include "ir/diagnostics.h"
#include "ir/graph.h"
#include "passes/host_types.h"
#include "passes/specialize/batch_sizes.h"
#include "passes/specialize/branches.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace cgc::passes {

/// Returns the cause for which a rule refuses `args`, where it is more than a mismatched type.
ir::Cause causeOfRefusal(const ir::Node &node, llvm::ArrayRef<ir::Arg> args);

/// Returns true if LibTorch's op of this name overwrites its first argument: `aten::add_` does,
/// `aten::__lshift__` does not.
inline bool isInPlaceName(llvm::StringRef op) {
  return op.ends_with("_") && !op.ends_with("__");
}

/// Returns the cause for which an aten.fallback cannot be compiled.
ir::Cause causeOfFallback(const ir::Node &node);

/// Returns the node that creates the tensor of `value`, followed through possible views and
/// in-place results.
const ir::Node &ownerOf(const ir::Value *value);

/// Walks a graph once, in execution order. Host values are kept in a side table and substituted
/// into the arguments of later nodes. Tensor ops get their types from their rules.
class Specializer {
public:
  /// With `untyped`, inputs may lack types, and so do the values that depend on them. `hostTypes`:
  /// PassContext::hostTypes. `batchSizes`, null or borrowed, follows all host values.
  Specializer(ir::Graph &graph, DeviceKind target, ir::Diagnostics &diagnostics,
              const HostTypes *hostTypes, bool untyped = false, BatchSizes *batchSizes = nullptr)
      : graph_(graph), target_(target), diagnostics_(diagnostics), hostTypes_(hostTypes),
        batchSizes_(batchSizes), untyped_(untyped) {}

  /// Reports errors to the diagnostics. Returns whether anything changed.
  bool run();

  /// Returns true if the failure is that of a substitution rather than of the model.
  bool isSubstitutionAtFault() const { return substitutionAtFault_; }

private:
  // Nodes
  void visit(ir::Node &node);
  void visitPlaceholder(ir::Node &node);
  void visitGetAttr(ir::Node &node);
  void visitCall(ir::Node &node);
  void visitOutput(ir::Node &node);
  /// Flattens an output into the tensors that it contains, with their names.
  void flatten(const ir::Arg &arg, const std::string &name, const ir::Node &node,
               std::vector<ir::Arg> &flat, std::vector<std::string> &names, bool &named);
  /// Evaluates a host op, or arithmetic on numbers.
  void evaluate(ir::Node &node, llvm::ArrayRef<ir::Arg> args);
  /// Infers the types of a tensor op.
  void infer(ir::Node &node, std::vector<ir::Arg> args);
  /// Replaces a cgc.host_call whose types are not stated by one that states them.
  void visitHostCall(ir::Node &node, std::vector<ir::Arg> args);
  Result<HostResults> hostResults(const std::string &function,
                                  llvm::ArrayRef<ir::Arg> inputs) const;
  /// Turns constants of one float into numbers where `node` computes with a number from a size.
  void numbersFromConstants(const ir::Node &node, std::vector<ir::Arg> &args) const;
  /// The number of a constant of one float, also through conversions.
  std::optional<ir::Arg> numberOf(const ir::Node &node) const;
  /// Turns a number (which tracing made from a size) into a 0-d tensor where the op takes only
  /// tensors.
  void tensorsFromNumbers(ir::Node &node, std::vector<ir::Arg> &args);
  /// Replaces values in `arg` by their host values, and devices by the target.
  void resolve(ir::Arg &arg);
  /// Records the host value of a result of `node`.
  void setHostValue(ir::Node &node, unsigned result, ir::Arg value);
  /// Erases `node` at the end of the walk unless there are errors.
  void markForErasure(ir::Node &node);
  void setType(ir::Value *value, ir::TensorType type);

  // Branches
  void visitIf(ir::Node &node);
  void visitEndIf(ir::Node &node);
  void visitRaise(ir::Node &node, const ir::Arg &message);
  /// Returns true if `node` turns a tensor into a bool that only branches read: the branches then
  /// report it.
  bool decidesOnly(const ir::Node &node);
  /// Returns true if an error in `node` does not affect the compiled model: the node may not run,
  /// or belongs to the original of a substitution.
  bool isSilent() const { return branches_.mayBeSkipped(); }

  // Reports
  void error(const ir::Node &node, std::string message, ir::Cause cause = ir::Cause::None);
  /// Reports an error whose message makes the node's text redundant. A message with a cause begins
  /// with the name of the op.
  void report(const ir::Node &node, std::string message, ir::Cause cause = ir::Cause::None);
  void reportCause(const ir::Node &node, llvm::StringRef what, ir::Cause cause);
  /// Returns true if `node` reads an element of a tensor; this is reported here or by the branch
  /// that it decides.
  bool reportHostRead(ir::Node &node);
  /// Reports errors of a call that do not depend on the types of its arguments.
  void diagnoseUntyped(ir::Node &node, llvm::ArrayRef<ir::Arg> args);
  // In-place ops, after the whole graph has been visited
  /// Reports in-place ops that overwrite memory that another view reads, as far as types are known.
  /// Otherwise canonicalize would refuse them.
  void diagnoseViews();
  /// Reports substitutions that lose the original's update of a value that is still read.
  void diagnoseReplaced();
  /// Records the value that `node`, part of a substitution's original, overwrites.
  void rememberReplaced(ir::Node &node);

  /// Returns true if `arg` is certainly a tensor. With types, every value is one.
  bool isTensor(const ir::Arg &arg) const;
  void rememberTensors(const ir::Node &node, llvm::ArrayRef<ir::Arg> args);

  ir::Graph &graph_;
  DeviceKind target_;
  ir::Diagnostics &diagnostics_;
  const HostTypes *hostTypes_;                            ///< May be null.
  BatchSizes *batchSizes_;                                ///< May be null.
  llvm::DenseMap<const ir::Value *, ir::Arg> hostValues_; ///< Looked up, never iterated.
  std::vector<ir::Node *> toErase_; ///< Nodes to erase after the walk, in order.
  BranchStack branches_;
  bool untyped_;
  llvm::DenseSet<const ir::Value *> tensors_; ///< Tensors without types. Looked up, never iterated.
  /// Each node with the value that it overwrites.
  std::vector<std::pair<const ir::Node *, const ir::Value *>> replaced_;
  bool substitutionAtFault_ = false;
  bool changed_ = false;
};

} // namespace cgc::passes

// Specializer: the walk of the specialize pass. Types and host values are in specialize.cpp,
// branches in specialize_branches.cpp, in-place ops in specialize_in_place.cpp, other reports in
// specialize_reports.cpp.
#pragma once

#include "ir/diagnostics.h"
#include "ir/graph.h"
#include "passes/specialize/branches.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace cgc::passes {

/// Why a rule refuses `args`, where that is more than a type that does not fit.
ir::Cause causeOfRefusal(const ir::Node &node, llvm::ArrayRef<ir::Arg> args);

/// Whether LibTorch's op of this name overwrites its first argument, as `aten::add_` does and
/// `aten::__lshift__` does not.
inline bool isInPlaceName(llvm::StringRef op) {
  return op.ends_with("_") && !op.ends_with("__");
}

/// Why an aten.fallback cannot be compiled.
ir::Cause causeOfFallback(const ir::Node &node);

/// What makes the tensor that `value` is, or may be a view of, or that an in-place op gives again.
const ir::Node &ownerOf(const ir::Value *value);

/// Goes through a graph once, in execution order. What is known on the host is kept beside the
/// graph and put into the arguments of later nodes; tensor ops get their types from their rules.
class Specializer {
public:
  /// With `untyped`, inputs may have no types, and what depends on them has none.
  Specializer(ir::Graph &graph, DeviceKind target, ir::Diagnostics &diagnostics,
              bool untyped = false)
      : graph_(graph), target_(target), diagnostics_(diagnostics), untyped_(untyped) {}

  /// Errors go to the diagnostics. Returns whether anything changed.
  bool run();

  /// The failure is that of a substitution, not of the model.
  bool isSubstitutionAtFault() const { return substitutionAtFault_; }

private:
  // Nodes
  void visit(ir::Node &node);
  void visitPlaceholder(ir::Node &node);
  void visitGetAttr(ir::Node &node);
  void visitCall(ir::Node &node);
  void visitOutput(ir::Node &node);
  /// Takes an output apart into the tensors in it, with their names.
  void flatten(const ir::Arg &arg, const std::string &name, const ir::Node &node,
               std::vector<ir::Arg> &flat, std::vector<std::string> &names, bool &named);
  /// Evaluates a host op, or arithmetic on numbers.
  void evaluate(ir::Node &node, llvm::ArrayRef<ir::Arg> args);
  /// Types a tensor op.
  void infer(ir::Node &node, std::vector<ir::Arg> args);
  /// A number (tracing made it from a size) where the op takes tensors only becomes a 0-d tensor.
  void tensorsFromNumbers(ir::Node &node, std::vector<ir::Arg> &args);
  /// Puts what is known on the host into `arg`, and the target for each device.
  void resolve(ir::Arg &arg);
  void know(ir::Node &node, unsigned result, ir::Arg value);
  /// `node` vanishes if all goes well.
  void evaluated(ir::Node &node);
  void setType(ir::Value *value, ir::TensorType type);

  // Branches
  void visitIf(ir::Node &node);
  void visitEndIf(ir::Node &node);
  void visitRaise(ir::Node &node, const ir::Arg &message);
  /// Whether `node` turns a tensor into a bool that nothing but branches read: then these are
  /// reported in its place.
  bool decidesOnly(const ir::Node &node);
  /// Whether nothing is wrong with the compiled model if `node` is: it may not run, or only stands
  /// beside a substitution.
  bool isSilent() const { return branches_.mayBeSkipped(); }

  // Reports
  void error(const ir::Node &node, std::string message, ir::Cause cause = ir::Cause::None);
  /// An error whose message says all that the node's text would. If it has a cause, it begins with
  /// what the op is called.
  void report(const ir::Node &node, std::string message, ir::Cause cause = ir::Cause::None);
  void reportCause(const ir::Node &node, llvm::StringRef what, ir::Cause cause);
  /// Whether `node` reads an element of a tensor; then it is reported, here or by the branch that
  /// it decides.
  bool reportHostRead(ir::Node &node);
  /// What is wrong with a call whatever the types of its arguments are.
  void judgeUntyped(ir::Node &node, llvm::ArrayRef<ir::Arg> args);
  // In-place ops, when all of the graph has been walked through
  /// Reports those that overwrite what another view shows, as far as there are types: canonicalize
  /// would refuse them too, one step later.
  void judgeViews();
  /// Reports substitutions that lose what the original did to a value that is still read.
  void judgeReplaced();
  /// Remembers what `node`, of the original of a substitution, overwrites.
  void rememberReplaced(ir::Node &node);

  /// Whether `arg` is surely a tensor. With types, all values are that.
  bool isTensor(const ir::Arg &arg) const;
  void rememberTensors(const ir::Node &node, llvm::ArrayRef<ir::Arg> args);

  ir::Graph &graph_;
  DeviceKind target_;
  ir::Diagnostics &diagnostics_;
  llvm::DenseMap<const ir::Value *, ir::Arg> known_; ///< Host values. Looked up, never iterated.
  std::vector<ir::Node *> evaluated_;                ///< Nodes that vanish, in order.
  BranchStack branches_;
  bool untyped_;
  llvm::DenseSet<const ir::Value *> tensors_; ///< Those without types. Looked up, never iterated.
  std::vector<std::pair<const ir::Node *, const ir::Value *>> replaced_; ///< What each overwrites.
  bool substitutionAtFault_ = false;
  bool changed_ = false;
};

} // namespace cgc::passes

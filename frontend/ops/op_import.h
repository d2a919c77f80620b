// OpImporter: imports one call of an ATen op by a row of aten.def or the name of cgc's op.
#pragma once

#include "frontend/ops/aten_call.h"
#include "ir/op_kind.h"

#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/StringRef.h"

#include <initializer_list>
#include <utility>

namespace cgc::frontend {

class OpImporter {
public:
  using Results = llvm::SmallVector<ir::Arg, 2>;

  /// Borrows the call.
  explicit OpImporter(AtenCall &call)
      : call_(call), readArgs_(static_cast<unsigned>(call.numArgs())) {}

  /// Adds nodes to the graph. Returns one Arg for each result of the call.
  Results import();

  // For the functions in aten.def's rows.

  size_t numInputs() const { return call_.numArgs(); }
  bool mayBeNone(size_t i) const { return call_.mayBeNone(i); }
  /// Returns the argument with this name in ATen's schema, at its default if the call leaves it
  /// out, or none if there is no such argument.
  ir::Arg arg(llvm::StringRef name);
  /// Returns the argument at a position. An argument that is never read and differs from its
  /// default in ATen's schema is refused, unless it only controls how to compute.
  ir::Arg input(size_t i) { return argAt(i, false); }
  /// Returns the argument with this name, or `otherwise` where it is none. An argument of the
  /// method that may be none is decided once it is known.
  ir::Arg argOr(llvm::StringRef name, ir::Arg otherwise);
  /// Returns the argument with this name, for an op whose import depends on its value. Only later
  /// passes know the arguments of a method: refuses the call if the argument is not a constant, and
  /// returns the refused value.
  ir::Arg constant(llvm::StringRef name);
  /// Returns the tensors of the list with this name, which the model has to write out; none if it
  /// does not: the call is refused then.
  ir::Arg::List tensors(llvm::StringRef name);
  /// Returns the value of the first output of a call that has been refused.
  ir::Arg refused() { return refuse(""); }
  /// Returns whether a tensor has `rank` dimensions.
  ir::Arg hasRank(const ir::Arg &tensor, int64_t rank);
  /// Returns a size of a tensor.
  ir::Arg sizeOf(const ir::Arg &tensor, const ir::Arg &dim) {
    return emit(ir::OpKind::Size, {{"self", tensor}, {"dim", dim}});
  }
  /// Returns `then` if `condition` holds, else `otherwise`. A condition that is not a constant
  /// becomes a branch, which `inline` or `specialize` decides.
  ir::Arg choose(const ir::Arg &condition, const ir::Arg &then, const ir::Arg &otherwise);
  /// As choose(), of what the functions add to the graph.
  ir::Arg chooseBranch(const ir::Arg &condition, llvm::function_ref<ir::Arg()> then,
                       llvm::function_ref<ir::Arg()> otherwise);
  /// Makes `specialize` refuse the call with a message if `condition` holds, which may depend on
  /// the arguments of the method.
  void refuseIf(const ir::Arg &condition, std::string message);
  /// Returns true if the op computes on host values: its result is not a tensor.
  bool isOnHost() const { return call_.isOnHost(); }
  /// Adds a call. Arguments that are not named take their default.
  ir::Arg emit(ir::OpKind op, std::initializer_list<std::pair<llvm::StringRef, ir::Arg>> args,
               bool inPlace = false) {
    return emit(op, llvm::ArrayRef(args.begin(), args.end()), inPlace);
  }
  ir::Arg emit(ir::OpKind op, llvm::ArrayRef<std::pair<llvm::StringRef, ir::Arg>> args,
               bool inPlace = false);
  /// Returns `first`, or refuses a call of which another result than the first is read. Models read
  /// the first; the others are for training.
  ir::Arg onlyResult(ir::Arg first);
  /// Refuses the call with a reason, unless it has been refused already. Returns the value of its
  /// first output.
  ir::Arg refuse(std::string reason, ir::Cause cause = ir::Cause::None);
  /// Refuses the call with a reason from the table of causes.
  ir::Arg refuse(ir::Cause cause) {
    return refuse(ir::explain("cgc cannot compile " + call_.name(), cause), cause);
  }

private:
  ir::Arg argAt(size_t i, bool mayBeNumber);
  Results importByName(ir::OpKind op, llvm::StringRef spec, bool inPlace);
  Results emitArgs(ir::OpKind op, std::vector<ir::Arg> args, bool inPlace);
  /// Refuses the call if it has a significant argument that was never read.
  std::optional<ir::Arg> refuseUnreadArgs();
  std::optional<size_t> indexOf(llvm::StringRef name) const;

  AtenCall &call_;
  llvm::SmallBitVector readArgs_;  ///< The arguments that have been read.
  std::optional<ir::Arg> refused_; ///< The first result of a call that was refused.
};

/// Returns true if a row of aten.def, or cgc's op of the same name, says how to import the op, such
/// as "aten::add" with the overload "Tensor".
bool hasRow(const std::string &name, const std::string &overload);

/// Returns the result, or the list of all results of an op with several.
using OpFunction = ir::Arg (*)(OpImporter &);
#define CGC_ATEN(name, op, spec)
#define CGC_ATEN_FN(name, function) ir::Arg function(OpImporter &);
#include "frontend/ops/aten.def"

} // namespace cgc::frontend

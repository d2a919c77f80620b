// OpImporter: one TorchScript op on its way into the IR, by a row of aten.def.
#pragma once

#include "frontend/graph_import.h"
#include "ir/op_kind.h"

#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/StringRef.h"

#include <initializer_list>
#include <utility>

namespace cgc::frontend {

class OpImporter {
public:
  using Results = llvm::SmallVector<ir::Arg, 2>;

  OpImporter(GraphImporter &importer, const torch::jit::Node &node,
             const c10::FunctionSchema &schema)
      : importer_(importer), node_(node), schema_(schema), asked_(schema.arguments().size()) {}

  /// Adds nodes to the graph; the results stand for the outputs of the TorchScript node.
  Results import();

  // For the functions in aten.def's rows.

  GraphImporter &importer() { return importer_; }
  const torch::jit::Node &node() const { return node_; }
  /// The argument with this name in ATen's schema; none if there is none.
  ir::Arg arg(llvm::StringRef name);
  /// The argument at a position. An argument that is not asked for and that is not what ATen's
  /// schema would fill in is refused, unless it only says how to compute.
  ir::Arg input(size_t i) { return argAt(i, false); }
  /// Whether the op computes on host values: its result is no tensor.
  bool isOnHost() const;
  /// Adds a call. Arguments that are not named take their default.
  ir::Arg emit(ir::OpKind op, std::initializer_list<std::pair<llvm::StringRef, ir::Arg>> args,
               bool inPlace = false);
  /// Says that this call cannot be compiled, and why. The result stands for its first output.
  ir::Arg refuse(std::string reason, ir::Cause cause = ir::Cause::None);
  /// The same for a reason of the table of causes.
  ir::Arg refuse(ir::Cause cause) {
    return refuse(ir::explain("cgc cannot compile " + schema_.name(), cause), cause);
  }

private:
  ir::Arg argAt(size_t i, bool mayBeNumber);
  Results importByName(ir::OpKind op, llvm::StringRef spec, bool inPlace);
  Results emitArgs(ir::OpKind op, std::vector<ir::Arg> args, bool inPlace);
  /// Refuses the call if an argument matters that nobody has asked for.
  std::optional<ir::Arg> refuseUnasked();
  std::optional<unsigned> numListResults(ir::OpKind op, llvm::ArrayRef<ir::Arg> args) const;

  GraphImporter &importer_;
  const torch::jit::Node &node_;
  const c10::FunctionSchema &schema_;
  llvm::SmallBitVector asked_; ///< The arguments of the schema that have been asked for.
  bool refused_ = false;
};

using OpFunction = ir::Arg (*)(OpImporter &);
#define CGC_ATEN(name, op, spec)
#define CGC_ATEN_FN(name, function) ir::Arg function(OpImporter &);
#include "frontend/aten.def"

} // namespace cgc::frontend

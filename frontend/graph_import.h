// GraphImporter: imports one TorchScript method as one ir::Graph.
#pragma once

#include "frontend/convert.h"
#include "frontend/output_names.h"
#include "ir/module.h"
#include "ir/offenders.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

#include <map>
#include <string>

namespace cgc::frontend {

/// State shared by the imports of all graphs of one file.
struct ImportState {
  TensorPool tensors;
  /// The line of the user's source that first calls a method ("visual.ln_pre.forward"), used as the
  /// location of methods in torch's own files. Never iterated.
  std::map<std::string, ir::Loc> callers;
  OutputNames outputNames;   ///< For the methods of the file's root module, not of its submodules.
  bool hasGradients = false; ///< Whether the plan has gradients, as one for training has.
};

/// The callers of a graph.
enum class Role {
  Entry,  ///< Compiled as an entry: its inputs must be tensors.
  Callee, ///< Called by other graphs of the file.
};

class GraphImporter {
public:
  /// Borrows everything; `module` is the imported form of `self` and its submodules, parameters
  /// included.
  GraphImporter(ImportState &state, const torch::jit::Module &self, ir::Module &module,
                ir::Graph &graph)
      : state_(state), self_(self), module_(module), graph_(graph), path_(module.path()) {}

  /// Imports the method with the code `source` and the schema `schema`.
  void import(torch::jit::Graph &source, const c10::FunctionSchema &schema, Role role);

  // For the calls of ops.

  ir::Graph &graph() { return graph_; }
  /// Returns the user's line: the innermost frame outside torch's own files, or, where none is
  /// recorded, the line of the call or of the preceding node.
  ir::Loc locOf(const torch::jit::Node &node);
  /// Returns the IR form of `value`. A tensor constant becomes a get_attr node on first use.
  ir::Arg arg(const torch::jit::Value *value);
  /// Like arg(), for an argument that may be a number: returns a 0-d tensor constant of an integer
  /// as a number. `specialize` does the same for fractions beside a size: beside another tensor
  /// they take part in type promotion.
  ir::Arg argOrNumber(const torch::jit::Value *value);
  /// Emits a prim.refused in place of `node`, bound to its outputs: the import continues, and
  /// compiling the graph reports `reason` with the line. Returns the value of the first output.
  ir::Arg refuse(const torch::jit::Node &node, std::string reason,
                 ir::Cause cause = ir::Cause::None);
  /// Emits an aten.fallback for `node`, with the ATen schema as its target.
  ir::Node *emitFallback(const torch::jit::Node &node);

private:
  struct Submodule {
    torch::jit::Module module;
    std::string path; ///< Relative to the graph's module; empty for that module itself.
  };

  void refuseInput(const torch::jit::Value &input);
  /// Returns the output names recorded in the file for `method`, a path from this graph's module;
  /// null if there are none.
  const std::vector<std::string> *namesOfOutputs(const std::string &method) const;
  /// Creates the outputs of the graph: `results`, or each element of a tuple whose elements are
  /// named.
  void createOutput(c10::ArrayRef<const torch::jit::Value *> results, ir::Loc loc);
  void refuseStream(const torch::jit::Node &node);
  void refuseNoGrad(const torch::jit::Node &node);
  void importBlock(const torch::jit::Block &block);
  void importNode(const torch::jit::Node &node);
  void importConstant(const torch::jit::Node &node);
  void importGetAttr(const torch::jit::Node &node);
  void importCallMethod(const torch::jit::Node &node);
  void importCallFunction(const torch::jit::Node &node);
  void importUnpack(const torch::jit::Node &node);
  void importDict(const torch::jit::Node &node);
  void importOp(const torch::jit::Node &node);

  // fixed_values.cpp
  /// Runs a call or an op that depends on parameters and constants alone if it, or what it calls,
  /// has no row in aten.def, and binds its results as constants. Returns false if `node` is none.
  bool importFixed(const torch::jit::Node &node);
  /// Returns true if the method, function or op that `node` calls has an op without a row.
  bool needsLibTorch(const torch::jit::Node &node) const;

  // mutation.cpp
  /// Imports a mutation of a list or dict, such as append; returns false if `node` is none. Lists
  /// are immutable during the import: a mutation rebinds the name to a new list.
  bool importMutation(const torch::jit::Node &node);

  // control_flow.cpp
  void importIf(const torch::jit::Node &node);
  void importLoop(const torch::jit::Node &node);
  /// Refuses the loop `node`, whose number of trips depends on `decider`, which is not a constant.
  void refuseLoop(const torch::jit::Node &node, const ir::Arg &decider);

  // graph_values.cpp
  void bind(const torch::jit::Value *value, ir::Arg arg);
  ir::Arg importIValue(const c10::IValue &value, const torch::jit::Node &node);
  ir::Arg materialize(const at::Tensor &tensor, ir::Loc loc);
  /// Returns a list as a single value, for arguments that accept no lists.
  ir::Arg asValue(ir::Arg arg, ir::Loc loc);
  std::vector<ir::Arg> argsOf(c10::ArrayRef<const torch::jit::Value *> values);

  ImportState &state_;
  const torch::jit::Module &self_;
  ir::Module &module_;
  ir::Graph &graph_;
  std::string path_;
  ir::Loc lastLine_;               ///< The last user line seen; initially that of the caller.
  std::vector<ir::Loc> callSites_; ///< Call sites of the functions being inlined, outermost first.
  // Looked up, never iterated.
  llvm::DenseMap<const torch::jit::Value *, ir::Arg> args_;
  llvm::DenseMap<const torch::jit::Value *, Submodule> submodules_;
  llvm::DenseMap<const torch::jit::Value *, at::Tensor> tensorConstants_;
  torch::jit::Graph *source_ = nullptr; ///< The code of the method.
  /// Values that may depend on more than parameters and constants. Looked up, never iterated.
  llvm::DenseSet<const torch::jit::Value *> varying_;
  std::vector<const torch::jit::Value *> mutated_; ///< Lists and dicts, one entry for each
                                                   ///< mutation.
};

/// Returns true if a call of `graph` changes nothing but values that it makes itself.
bool isPure(torch::jit::Graph &graph);

/// Returns the name of a TorchScript value without its uniquing suffix; empty for a number.
std::string plainName(const torch::jit::Value &value);

} // namespace cgc::frontend

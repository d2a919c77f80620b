// GraphImporter: one TorchScript method becomes one ir::Graph.
#pragma once

#include "frontend/convert.h"
#include "frontend/output_names.h"
#include "ir/module.h"
#include "ir/offenders.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <map>
#include <string>

namespace cgc::frontend {

/// What the imports of all graphs of one file share.
struct ImportState {
  TensorPool tensors;
  /// Where the user's source first calls a method ("visual.ln_pre.forward"), for the lines of
  /// methods that are torch's own. Never iterated.
  std::map<std::string, ir::Loc> callers;
  OutputNames outputNames; ///< Of the methods of the file's own module, not of its submodules.
};

/// What is expected of a graph.
enum class Role {
  Entry,  ///< Whoever compiles it gives its inputs: they must be tensors.
  Callee, ///< Called by other graphs of the file.
};

class GraphImporter {
public:
  /// Borrows everything; `module` is the imported form of `self` and its submodules, parameters
  /// included.
  GraphImporter(ImportState &state, const torch::jit::Module &self, ir::Module &module,
                ir::Graph &graph)
      : state_(state), self_(self), module_(module), graph_(graph), path_(module.path()) {}

  /// `schema` is that of the method whose code is `source`.
  void import(const torch::jit::Graph &source, const c10::FunctionSchema &schema, Role role);

  // For the functions that import one op.

  ir::Graph &graph() { return graph_; }
  /// The user's line: the innermost one that is not in torch's own files; where none is recorded,
  /// that of the call or of the node before.
  ir::Loc locOf(const torch::jit::Node &node);
  /// The IR form of `value`. Tensor constants become get_attr nodes here, on first use.
  ir::Arg arg(const torch::jit::Value *value);
  /// For an argument that may be a number: a tensor constant without dimensions as a number, else
  /// arg(). (Traced size arithmetic spells its numbers as such tensors. Fractions count only beside
  /// a size: with another tensor they take part in type promotion.)
  ir::Arg argOrNumber(const torch::jit::Value *value, const torch::jit::Node &user);
  /// A prim.refused in the place of `node`, bound to its outputs: the import goes on, and whoever
  /// compiles the graph gets `reason` with the line. Returns what stands for the first output.
  ir::Arg refuse(const torch::jit::Node &node, std::string reason,
                 ir::Cause cause = ir::Cause::None);
  /// An aten.fallback that stands for `node`: its target is the ATen schema.
  ir::Node *emitFallback(const torch::jit::Node &node);

private:
  struct Submodule {
    torch::jit::Module module;
    std::string path; ///< Relative to the graph's module; empty for itself.
  };

  void refuseInput(const torch::jit::Value &input);
  /// What the file says about the outputs of `method`, a path from this graph's module; null if
  /// nothing.
  const std::vector<std::string> *namesOfOutputs(const std::string &method) const;
  /// The outputs of the graph: `results`, or each element of a tuple with a name of its own.
  void createOutput(c10::ArrayRef<const torch::jit::Value *> results, ir::Loc loc);
  void refuseStream(const torch::jit::Node &node);
  void importBlock(const torch::jit::Block &block);
  void importNode(const torch::jit::Node &node);
  void importConstant(const torch::jit::Node &node);
  void importGetAttr(const torch::jit::Node &node);
  void importCallMethod(const torch::jit::Node &node);
  void importCallFunction(const torch::jit::Node &node);
  void importUnpack(const torch::jit::Node &node);
  void importDict(const torch::jit::Node &node);
  void importOp(const torch::jit::Node &node);

  // mutation.cpp
  /// Append and the like; false if `node` is nothing like that. A list is a constant of the import:
  /// a change binds its name to another one.
  bool importMutation(const torch::jit::Node &node);

  // control_flow.cpp
  void importIf(const torch::jit::Node &node);
  void importLoop(const torch::jit::Node &node);
  /// Refuses the loop `node`, since `decider` decides how often it runs and is no constant.
  void refuseLoop(const torch::jit::Node &node, const ir::Arg &decider);

  // graph_values.cpp
  void bind(const torch::jit::Value *value, ir::Arg arg);
  ir::Arg importIValue(const c10::IValue &value, const torch::jit::Node &node);
  ir::Arg materialize(const at::Tensor &tensor, ir::Loc loc);
  /// A list as a value, for places that take no lists.
  ir::Arg asValue(ir::Arg arg, ir::Loc loc);
  std::vector<ir::Arg> argsOf(c10::ArrayRef<const torch::jit::Value *> values);

  ImportState &state_;
  const torch::jit::Module &self_;
  ir::Module &module_;
  ir::Graph &graph_;
  std::string path_;
  ir::Loc lastLine_;               ///< The user's line seen last; at first that of the caller.
  std::vector<ir::Loc> callSites_; ///< Of the functions that are being inlined, outermost first.
  // Looked up, never iterated.
  llvm::DenseMap<const torch::jit::Value *, ir::Arg> args_;
  llvm::DenseMap<const torch::jit::Value *, Submodule> submodules_;
  llvm::DenseMap<const torch::jit::Value *, at::Tensor> tensorConstants_;
  std::vector<const torch::jit::Value *> mutated_; ///< Lists and dicts, each time they change.
};

/// The name of a TorchScript value without the suffix that keeps it unique; empty for a number.
std::string plainName(const torch::jit::Value &value);

} // namespace cgc::frontend

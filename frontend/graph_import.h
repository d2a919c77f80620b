// GraphImporter: one TorchScript method becomes one ir::Graph.
#pragma once

#include "frontend/convert.h"
#include "ir/diagnostics.h"
#include "ir/module.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <set>
#include <string>
#include <tuple>

namespace cgc::frontend {

/// What the imports of all graphs of one file share.
struct ImportState {
  ir::Diagnostics &diagnostics;
  TensorPool tensors;
  /// Message, file and line of what was reported: a line that runs in every block is reported once.
  std::set<std::tuple<std::string, std::string, unsigned>> reported;
};

class GraphImporter {
public:
  /// Borrows everything; `module` is the imported form of `self` and its submodules, parameters
  /// included.
  GraphImporter(ImportState &state, const torch::jit::Module &self, ir::Module &module,
                ir::Graph &graph)
      : state_(state), self_(self), module_(module), graph_(graph), path_(module.path()) {}

  void import(const torch::jit::Graph &source);

  // For the functions that import one op.

  ir::Graph &graph() { return graph_; }
  ir::Loc locOf(const torch::jit::Node &node) const;
  /// The IR form of `value`. Tensor constants become get_attr nodes here, on first use.
  ir::Arg arg(const torch::jit::Value *value);
  /// For an argument that may be a number: a tensor constant without dimensions as a number, else
  /// arg(). (Traced size arithmetic spells its numbers as such tensors. Fractions count only beside
  /// a size: with another tensor they take part in type promotion.)
  ir::Arg argOrNumber(const torch::jit::Value *value, const torch::jit::Node &user);
  /// Reports what is wrong at `node`, once for each message and source line.
  void report(const torch::jit::Node &node, std::string message);
  /// An aten.fallback that stands for `node`: its target is the ATen schema.
  ir::Node *emitFallback(const torch::jit::Node &node);

private:
  struct Submodule {
    torch::jit::Module module;
    std::string path; ///< Relative to the graph's module; empty for itself.
  };

  void importBlock(const torch::jit::Block &block);
  void importNode(const torch::jit::Node &node);
  void importConstant(const torch::jit::Node &node);
  void importGetAttr(const torch::jit::Node &node);
  void importCallMethod(const torch::jit::Node &node);
  void importCallFunction(const torch::jit::Node &node);
  void importUnpack(const torch::jit::Node &node);
  void importDict(const torch::jit::Node &node);
  void importIf(const torch::jit::Node &node);
  void importLoop(const torch::jit::Node &node);
  void importOp(const torch::jit::Node &node);

  void bind(const torch::jit::Value *value, ir::Arg arg);
  /// Binds the outputs to a stand-in, so that the import can go on after an error.
  void bindStandIn(const torch::jit::Node &node);
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
  unsigned depth_ = 0; ///< Of blocks and inlined functions.
  // Looked up, never iterated.
  llvm::DenseMap<const torch::jit::Value *, ir::Arg> args_;
  llvm::DenseMap<const torch::jit::Value *, Submodule> submodules_;
  llvm::DenseMap<const torch::jit::Value *, at::Tensor> tensorConstants_;
};

/// The name of a TorchScript value without the suffix that keeps it unique; empty for a number.
std::string plainName(const torch::jit::Value &value);

} // namespace cgc::frontend

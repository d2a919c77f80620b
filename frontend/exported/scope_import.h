// ScopeImporter: imports one call of a module as one ir::Graph.
#pragma once

#include "frontend/exported/program.h"
#include "frontend/exported/scopes.h"
#include "frontend/exported/value_uses.h"
#include "ir/module.h"
#include "ir/offenders.h"

#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace cgc::exported {

/// A parameter, buffer or constant that a program reads.
struct WeightInput {
  std::string path; ///< From the root: "visual.conv1.weight".
  ir::TensorType type;
  std::string refusal; ///< Why cgc cannot hold it; empty if it can.
};

/// What the imports of all scopes of one program share.
struct ImportState {
  const Program &program;
  const ValueUses &uses;
  llvm::StringMap<WeightInput> weights = {}; ///< By the name of the value. Never iterated.
  ir::Loc lastLine = {};                     ///< The last line of the user's source.
};

class ScopeImporter final {
public:
  /// Borrows everything. `graph` is a graph of `module`, which is the module of the scope.
  ScopeImporter(ImportState &state, const Scope &scope, ir::Module &module, ir::Graph &graph)
      : state_(state), scope_(scope), module_(module), graph_(graph), path_(module.path()) {}

  /// Imports the scope of the whole program.
  void importRoot();

  // For the calls of ops.

  ir::Graph &graph() { return graph_; }
  ir::Loc locOf(const Node &node);
  bool isRead(llvm::StringRef name) const { return state_.uses.isRead(name); }
  /// Returns the IR form of an argument. Unsupported, with the reason, if it has none.
  Result<ir::Arg> arg(const Argument &argument);
  /// Binds the results of a node to `args`, one for each name.
  void bind(const Node &node, llvm::ArrayRef<ir::Arg> args);
  /// Emits a prim.refused in place of `node`, bound to its results.
  ir::Arg refuse(const Node &node, std::string reason, ir::Cause cause = ir::Cause::None);

private:
  void importCallee();
  void importNodes();
  void importNode(const Node &node);
  void importOp(const Node &node);
  void importAssertion(const Node &node);
  void importCall(const Scope &scope);
  /// The values that the calls of `scope` pass to it: its weights are its own.
  std::vector<std::string> argumentsOf(const Scope &scope) const;
  void addInput(llvm::StringRef value, llvm::StringRef name);
  void createOutput();
  ir::Arg outputOf(const ValueTree &tree, size_t &next);
  ir::Arg lookup(llvm::StringRef name);
  ir::Arg readWeight(const WeightInput &weight);
  void bindName(llvm::StringRef name, ir::Arg arg);

  ImportState &state_;
  const Scope &scope_;
  ir::Module &module_;
  ir::Graph &graph_;
  std::string path_;
  llvm::StringMap<ir::Arg> args_; ///< By the name of the value. Never iterated.
};

} // namespace cgc::exported

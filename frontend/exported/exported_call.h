// ExportedCall: a node of an exported program, for OpImporter.
#pragma once

#include "frontend/exported/op_names.h"
#include "frontend/exported/scope_import.h"
#include "frontend/ops/aten_call.h"

namespace cgc::exported {

class ExportedCall final : public frontend::AtenCall {
public:
  /// Borrows the importer and the node.
  ExportedCall(ScopeImporter &importer, const Node &node)
      : importer_(importer), node_(node), op_(opNameOf(node.target)) {}

  const std::string &name() const override { return op_.name; }
  const std::string &overload() const override { return op_.overload; }
  size_t numArgs() const override { return node_.inputs.size(); }
  llvm::StringRef argName(size_t i) const override { return node_.inputs[i].name; }
  Result<ir::Arg> arg(size_t i, bool /*mayBeNumber*/) override {
    return importer_.arg(node_.inputs[i].argument);
  }
  // A program has values, not types: an argument that is none or a list is one for every bucket.
  bool isList(size_t i) const override;
  bool mayBeNone(size_t) const override { return false; }
  /// The archive has no schemas, and torch leaves most defaults out.
  bool isDefault(size_t, const ir::Arg &) const override { return false; }
  size_t numResults() const override { return node_.outputs.size(); }
  bool isUsed(size_t result) const override;
  bool isOnHost() const override;
  std::optional<unsigned> listLength() const override;
  ir::Graph &graph() override { return importer_.graph(); }
  ir::Loc loc() override { return importer_.locOf(node_); }
  ir::Arg refuse(std::string reason, ir::Cause cause) override;
  ir::Node *emitFallback() override;

  /// Whether the results of the node are bound.
  bool isBound() const { return isBound_; }

private:
  ScopeImporter &importer_;
  const Node &node_;
  OpName op_;
  bool isBound_ = false;
};

/// The number of values that a node makes.
unsigned numValues(const Node &node);

} // namespace cgc::exported

// TorchScriptCall: a node of TorchScript with a schema, for OpImporter.
#pragma once

#include "frontend/graph_import.h"
#include "frontend/ops/aten_call.h"

namespace cgc::frontend {

class TorchScriptCall final : public AtenCall {
public:
  /// Borrows everything.
  TorchScriptCall(GraphImporter &importer, const torch::jit::Node &node,
                  const c10::FunctionSchema &schema)
      : importer_(importer), node_(node), schema_(schema) {}

  const std::string &name() const override { return schema_.name(); }
  const std::string &overload() const override { return schema_.overload_name(); }
  size_t numArgs() const override { return node_.inputs().size(); }
  llvm::StringRef argName(size_t i) const override;
  Result<ir::Arg> arg(size_t i, bool mayBeNumber) override;
  bool isList(size_t i) const override;
  bool mayBeNone(size_t i) const override;
  bool isDefault(size_t i, const ir::Arg &value) const override;
  size_t numResults() const override { return node_.outputs().size(); }
  bool isUsed(size_t result) const override { return node_.outputs()[result]->hasUses(); }
  bool isOnHost() const override;
  std::optional<unsigned> listLength() const override;
  ir::Graph &graph() override { return importer_.graph(); }
  ir::Loc loc() override { return importer_.locOf(node_); }
  ir::Arg refuse(std::string reason, ir::Cause cause) override {
    return importer_.refuse(node_, std::move(reason), cause);
  }
  ir::Node *emitFallback() override { return importer_.emitFallback(node_); }

private:
  /// Null for an argument that the schema lacks.
  const c10::Argument *argument(size_t i) const;

  GraphImporter &importer_;
  const torch::jit::Node &node_;
  const c10::FunctionSchema &schema_;
};

} // namespace cgc::frontend

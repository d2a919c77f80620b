// StepBuilder: adds calls and reads of states to the graph of a training step.
#pragma once

#include "ir/module.h"
#include "ir/rewriter.h"

#include <memory>
#include <string>
#include <vector>

namespace cgc::passes {

/// Adds them at the end. They have the line of the step's first output, the loss, and its device.
class StepBuilder {
public:
  /// The graph has an output that is a tensor, or nothing is added.
  explicit StepBuilder(ir::Graph &graph) : rewriter_(graph) {}

  ir::Graph &graph() { return rewriter_.graph(); }

  /// Adds what follows behind the inputs of the graph, or at the end again.
  void insertFirst();
  void insertLast() { before_ = nullptr; }

  /// A call with one result. Arguments that are left out have their defaults.
  ir::Value *call(ir::OpKind op, std::vector<ir::Arg> args) {
    return callNode(op, std::move(args))->result();
  }
  ir::Node *callNode(ir::OpKind op, std::vector<ir::Arg> args);

  /// The first read of a state that the graph reads; null if it does not.
  ir::Value *read(llvm::StringRef path);
  /// A read of a state of the owning module, which is added with the first value `first` if another
  /// bucket has not added it yet.
  ir::Value *readState(const std::string &path, StateRole role, ir::TensorType type,
                       std::shared_ptr<const ir::TensorData> first);
  /// The same for a state of role `control`.
  ir::Value *readControl(const char *name, DType dtype, ir::Dims sizes,
                         std::shared_ptr<const ir::TensorData> first);

private:
  /// Computes the first output that is a tensor.
  const ir::Node &root();
  ir::Node *before() { return before_ ? before_ : graph().output(); }

  ir::GraphRewriter rewriter_;
  ir::Node *before_ = nullptr; ///< Null: the output.
};

} // namespace cgc::passes

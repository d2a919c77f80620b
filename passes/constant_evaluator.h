// ConstantEvaluator: interface that runs one op on constant tensors at compile time. The driver
// implements it with the runtime's CPU target, so that ir and passes do not need LibTorch.
#pragma once

#include "ir/graph.h"
#include "runtime/base/status.h"

#include <memory>
#include <vector>

namespace cgc::passes {

class ConstantEvaluator {
public:
  virtual ~ConstantEvaluator() = default;
  /// Evaluates `node`. `inputs` holds the bytes of the node's Value arguments, in the order of
  /// Node::forEachInput. Returns one dense tensor for each result of the node.
  virtual Result<std::vector<std::shared_ptr<const ir::TensorData>>>
  evaluate(const ir::Node &node, llvm::ArrayRef<std::shared_ptr<const ir::TensorData>> inputs) = 0;
};

} // namespace cgc::passes

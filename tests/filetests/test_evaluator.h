// FileTestEvaluator: evaluates a few ops without LibTorch, so that file tests can cover folding.
#pragma once

#include "passes/constant_evaluator.h"

namespace cgc {

/// Evaluates aten.full and aten.neg in f32. Unsupported for any other op.
class FileTestEvaluator final : public passes::ConstantEvaluator {
public:
  Result<std::vector<std::shared_ptr<const ir::TensorData>>>
  evaluate(const ir::Node &node,
           llvm::ArrayRef<std::shared_ptr<const ir::TensorData>> inputs) override;
};

} // namespace cgc

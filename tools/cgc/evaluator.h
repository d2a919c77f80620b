// RuntimeEvaluator: evaluates constants at compile time with the runtime's own cpu target, so that
// folding computes what running would have computed.
#pragma once

#include "passes/evaluator.h"

namespace cgc::tool {

class RuntimeEvaluator final : public passes::ConstantEvaluator {
public:
  Result<std::vector<std::shared_ptr<const ir::TensorData>>>
  evaluate(const ir::Node &node,
           llvm::ArrayRef<std::shared_ptr<const ir::TensorData>> inputs) override;
};

} // namespace cgc::tool

// RuntimeEvaluator: evaluates constants at compile time with the runtime's cpu target, so that
// folding gives the result that the runtime would have computed.
#pragma once

#include "passes/constant_evaluator.h"

#include <string>
#include <utility>

namespace cgc::driver {

class RuntimeEvaluator final : public passes::ConstantEvaluator {
public:
  /// `providerPath` is the path of the ATen provider, which does the computation.
  explicit RuntimeEvaluator(std::string providerPath) : providerPath_(std::move(providerPath)) {}

  Result<std::vector<std::shared_ptr<const ir::TensorData>>>
  evaluate(const ir::Node &node,
           llvm::ArrayRef<std::shared_ptr<const ir::TensorData>> inputs) override;

private:
  std::string providerPath_;
};

} // namespace cgc::driver

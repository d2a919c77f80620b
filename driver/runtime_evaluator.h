// RuntimeEvaluator: evaluates constants at compile time as the runtime would, so that folding does
// not change what a plan computes.
#pragma once

#include "passes/constant_evaluator.h"

#include <string>
#include <utility>

namespace cgc::driver {

class RuntimeEvaluator final : public passes::ConstantEvaluator {
public:
  /// For cuda, the references of the kernels compute, computeInDouble() the arithmetic in f64, and
  /// LibTorch only what neither does. For cpu, LibTorch computes. `libraryFolder` has
  /// libcgc_reference and libcgc_aten.
  RuntimeEvaluator(DeviceKind target, std::string libraryFolder)
      : target_(target), libraryFolder_(std::move(libraryFolder)) {}

  Result<std::vector<std::shared_ptr<const ir::TensorData>>>
  evaluate(const ir::Node &node,
           llvm::ArrayRef<std::shared_ptr<const ir::TensorData>> inputs) override;

private:
  DeviceKind target_;
  std::string libraryFolder_;
};

} // namespace cgc::driver

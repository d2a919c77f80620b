// DifferentiatedGraph: a graph whose gradients cgc and LibTorch compute, for tests.
#pragma once

#include "ir/module.h"
#include "runtime/exec/engine.h"
#include "tests/numerics/op_tests.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace cgc::test {

/// Which inputs are trained, and how they lie in memory.
struct Variant {
  std::set<size_t> trained;
  bool strided = false;
};

/// A graph with its random inputs, and a random factor for each element of the floating outputs:
/// the loss is the sum of the products.
class DifferentiatedGraph {
public:
  /// Borrows the case. Failures are gtest failures.
  explicit DifferentiatedGraph(const GradientCase &c);

  bool isOk() const { return module_ != nullptr; }
  /// Returns false if no output is floating, so that there is no loss.
  bool hasLoss() const;
  /// The inputs of floating dtypes.
  const std::vector<size_t> &floating() const { return floating_; }
  const std::vector<at::Tensor> &inputs() const { return inputs_; }
  const at::Tensor &input(size_t i) const { return inputs_[i]; }

  /// The gradients of the trained inputs, as cgc computes them. An input without a path to the loss
  /// has zeros. Unsupported, with the diagnostics as its message, if the graph cannot be
  /// differentiated; other failures are gtest failures.
  Result<std::map<size_t, at::Tensor>>
  gradients(const Variant &variant, DeviceKind target = DeviceKind::Cpu,
            ExecutorKind executor = ExecutorKind::Stream) const;
  /// The same as LibTorch computes them.
  std::map<size_t, at::Tensor> expected(const Variant &variant) const;
  /// The gradient of input `i` by central differences of LibTorch's results.
  at::Tensor differences(size_t i) const;

private:
  at::Tensor lossOf(const std::vector<at::Tensor> &outputs) const;
  /// The bytes of a state: of an input, or of its transpose.
  at::Tensor stateOf(size_t i, const Variant &variant) const;
  /// The module whose graph @g has the trained inputs as states, and the loss as its only output.
  std::string trainingText(const Variant &variant) const;

  const GradientCase &case_;
  std::unique_ptr<ir::Module> module_;
  std::vector<at::Tensor> inputs_, factors_;
  std::vector<size_t> floating_;
};

} // namespace cgc::test

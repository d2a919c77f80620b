// LoweredGraph: IR text, lowered and run by the runtime with LibTorch's provider, for
// tests.
#pragma once

#include "ir/module.h"
#include "runtime/exec/engine.h"

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace cgc::test {

at::ScalarType torchType(DType dtype);

/// A random tensor of the type: normal values, integers in [0, bound), or bools. Dense.
at::Tensor randomTensor(const ir::TensorType &type, int64_t bound, at::Generator &random);

class LoweredGraph {
public:
  /// Lowers every graph of `text` to an entry of its name; its types are those of the CPU, also for
  /// another target. Parameters get random bytes. Failures are gtest failures.
  explicit LoweredGraph(const std::string &text, int64_t bound = 3,
                        DeviceKind target = DeviceKind::Cpu);
  ~LoweredGraph();

  /// Whether there is an engine, that is, nothing failed.
  bool isOk() const { return engine_ != nullptr; }
  const PlanData &plan() const { return plan_->data(); }
  /// The tensor over a parameter's bytes.
  at::Tensor parameter(const std::string &path) const;
  /// Random inputs for `entry`.
  std::vector<at::Tensor> randomInputs(const std::string &entry);
  /// Runs `entry`, twice in a row, in memory that was poisoned. Results are in host memory.
  Result<std::vector<at::Tensor>> run(const std::string &entry,
                                      const std::vector<at::Tensor> &inputs,
                                      ExecutorKind executor = ExecutorKind::Stream);

private:
  int64_t bound_;
  /// Of its own: at::manual_seed asks for CUDA, and LibTorch then never looks for it again.
  at::Generator random_;
  std::filesystem::path file_;
  std::unique_ptr<ir::Module> module_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<Engine> engine_;
};

} // namespace cgc::test

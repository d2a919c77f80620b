// LoweredGraph: IR text, lowered and run by the runtime with LibTorch's provider, for tests.
#pragma once

#include "backend/backend.h"
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

/// Returns a random dense tensor of the type: normal values, integers in [0, bound), or bools.
at::Tensor randomTensor(const ir::TensorType &type, int64_t bound, at::Generator &random);

/// Returns the tolerance of a CUDA result of `type` against the CPU: f32 results differ by
/// summation order and elementary functions, and rounding to 16 bits may go either way, in each of
/// a few steps. Integers and bools are exact.
double cudaTolerance(at::ScalarType type);

/// Infers the types of results that the text of a graph leaves out. Failures are gtest failures.
void inferTypes(ir::Graph &graph);

class LoweredGraph {
public:
  /// Lowers every graph of `text` to an entry of its name. The text's types are those of the CPU,
  /// also for another target. Parameters get random bytes. `executor` is the engine's. Failures are
  /// gtest failures.
  explicit LoweredGraph(const std::string &text, int64_t bound = 3,
                        DeviceKind target = DeviceKind::Cpu,
                        ExecutorKind executor = ExecutorKind::Stream);
  /// Lowers a graph of types as its entry, with the parameters of its module.
  explicit LoweredGraph(const ir::Graph &graph, DeviceKind target = DeviceKind::Cpu,
                        ExecutorKind executor = ExecutorKind::Stream);
  ~LoweredGraph();

  /// Returns true if there is an engine, that is, if nothing failed.
  bool isOk() const { return engine_ != nullptr; }
  const PlanData &plan() const { return plan_->data(); }
  /// Returns a tensor over a parameter's bytes.
  at::Tensor parameter(const std::string &path) const;
  /// Returns random inputs for `entry`.
  std::vector<at::Tensor> randomInputs(const std::string &entry);
  /// Runs `entry` twice in a row, in memory that was poisoned. Returns results in host memory.
  /// `executor`: the engine's, if empty.
  Result<std::vector<at::Tensor>> run(const std::string &entry,
                                      const std::vector<at::Tensor> &inputs,
                                      std::optional<ExecutorKind> executor = {});

private:
  /// Lowers, writes and loads the plan, and makes the engine.
  void load(llvm::ArrayRef<backend::EntryBucket> buckets, DeviceKind target, ExecutorKind executor);

  int64_t bound_;
  /// A private generator: at::manual_seed queries CUDA, and LibTorch then never looks for it again.
  at::Generator random_;
  std::filesystem::path file_;
  std::unique_ptr<ir::Module> module_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<Engine> engine_;
};

} // namespace cgc::test

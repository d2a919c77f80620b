// Runner: a loaded plan that is ready to run on host tensors.
#pragma once

#include "runtime/exec/engine.h"
#include "tools/cgc/io/inputs.h"
#include "tools/cgc/io/tensors.h"

#include <memory>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace cgc::tool {

/// A plan, its engine and its context. Each borrows from the one before, so a Runner does not move.
class Runner final {
public:
  /// Loads and verifies the plan `path`, opens the op libraries that it calls and prepares all
  /// buckets for `options.executor`. LibTorch runs the plan's host calls on the file `hostModules`,
  /// if it has any. The context's notes go to the log. `communicator` is that of a rank on the GPU
  /// `device`.
  static Result<std::unique_ptr<Runner>>
  create(const std::string &path, const std::vector<std::string> &opLibraries,
         ContextOptions options, bool separateBuffers = false, const std::string &hostModules = {},
         std::shared_ptr<Communicator> communicator = nullptr, int device = 0);

  /// Verifies the plan `path` and prepares all records for `executor`. Runs nothing, so that
  /// functions of the host need not be given.
  static Status prepareAll(const std::string &path, ExecutorKind executor);

  const PlanData &plan() const { return plan_.data(); }
  /// Runs one bucket and returns its outputs.
  Result<std::vector<HostTensor>> run(const Entry &entry, size_t bucket,
                                      std::vector<HostTensor> &inputs);
  /// The same for inputs of files. A batch that no bucket has (BoundInputs::rows) is split and
  /// padded as in a session.
  Result<std::vector<HostTensor>> run(const Entry &entry, BoundInputs &inputs);
  /// Gives the parameters and buffers of a training plan the values of a file of safetensors or of
  /// a checkpoint's folder. Usage if the plan has none or the file does not fit.
  Status loadWeights(const std::string &path);
  Context &context() { return *context_; }
  BucketStats stats(const Entry &entry, size_t bucket) const {
    return *context_->stats(entry.name, bucket);
  }

private:
  explicit Runner(Plan plan) : plan_(std::move(plan)) {}
  /// Gives the 16-bit copies, if the plan has any, the values of their parameters.
  Status refreshCopies();
  Status prepare(EngineOptions engine, const ContextOptions &context);
  Plan plan_;
  std::optional<Engine> engine_;
  std::optional<Context> context_;
};

/// Adds --executor with all executors; `name` must outlive `command`.
void addExecutorOption(CLI::App &command, std::string &name);
/// Adds --executor to a verb that measures times, which refuses the reference executor.
void addTimedExecutorOption(CLI::App &command, std::string &name);
/// Adds a hidden --executor to a verb that chooses the executor itself: an error that says so.
void refuseExecutorOption(CLI::App &command);
/// Adds --threads. `threads` is 0 without the option and must outlive `command`.
CLI::Option *addThreadsOption(CLI::App &command, int &threads);
/// Usage if --threads is given and the plan runs on a GPU.
Status checkThreads(const PlanData &plan, int threads, ExecutorKind executor = ExecutorKind::Graph);
/// The executor that a value of --executor stands for.
ExecutorKind executorOf(const std::string &name);

} // namespace cgc::tool

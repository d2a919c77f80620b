// Pipeline: from an imported module to one specialized graph for each bucket.
#pragma once

#include "passes/manager/instrumentation.h"
#include "passes/manager/pass_manager.h"
#include "passes/substitution/substitutions.h"

#include <memory>
#include <optional>
#include <string>

namespace cgc::passes {

/// Selects which of the default passes run.
enum class OptLevel : uint8_t {
  O0, ///< No selection: every op of the model is an op of the plan.
  O1,
};

/// Returns the default pipeline as text for PassManager::parse. Includes the pass `precision` if
/// `precision` is given, and `host-calls` for each of the globs `hostModules`.
std::string defaultPasses(DeviceKind target = DeviceKind::Cpu, OptLevel level = OptLevel::O1,
                          std::optional<DType> precision = std::nullopt,
                          llvm::ArrayRef<std::string> hostModules = {});

/// What decides the pipelines of a training plan.
struct TrainingPipeline {
  DeviceKind target = DeviceKind::Cpu;
  OptLevel level = OptLevel::O1;      ///< From O1 on, kernels of several ops are selected.
  std::optional<DType> autocast = {}; ///< F16 or BF16: the dtype of matrix products.
  size_t loss = 0;                    ///< The output that is the loss.
  std::string optimizer = {};         ///< The options of the pass `optimize`.
  std::string recompute = {};         ///< The level of the pass `recompute`; empty: no such pass.
  /// The micro-batches that a batch is computed in; none: it is not split.
  std::optional<uint64_t> microBatches = {};

  bool selects() const { return target == DeviceKind::Cuda && level != OptLevel::O0; }
};
/// Returns the pipeline of a training step: the module, its gradients, and the update.
std::string trainingPasses(const TrainingPipeline &training);
/// Returns the pipeline of a micro-batch of a training step, which adds its gradients to those of
/// the micro-batches before it, or overwrites them if it `isFirst`.
std::string gradientPasses(const TrainingPipeline &training, bool isFirst);
/// Returns the pipeline of the update after the micro-batches, for a graph without nodes.
std::string updatePasses(llvm::StringRef optimizer);
/// Returns the pipeline of the method of a training step without gradients and update.
std::string evaluationPasses(const TrainingPipeline &training);

/// Returns the selection passes, in order. The default for cuda runs them from O1 on.
std::string selectionPasses();

/// Built by PipelineBuilder. Call prepare() once, then specialize() for each entry and bucket.
class Pipeline final {
public:
  /// Runs the module phase. Afterwards each method of `root` is one flat graph.
  Status prepare(ir::Module &root, PassContext context) const;

  /// Runs the graph phase on a copy of `entry` and returns the copy, a graph named `name` in which
  /// every value has a type. `inputs` are the types of the entry's inputs, in order; their device
  /// becomes context.target. An input of dynamic type keeps its default. Usage if the number of
  /// inputs is wrong. `entry` is unchanged; its root module may get constants.
  Result<std::unique_ptr<ir::Graph>> specialize(const ir::Graph &entry, std::string name,
                                                llvm::ArrayRef<ir::Type> inputs,
                                                PassContext context) const;

  /// Runs the graph phase on `graph` itself, for IR read from a file.
  Status run(ir::Graph &graph, PassContext context) const;

  /// Prints the table of --time-passes. Call once, after all runs.
  void finish() const { instrumentation_.finish(); }

  const PassManager &passes() const { return passes_; }
  /// Usage if the instrumentation explains a pass that is none of passes().
  Status checkExplained() const;

private:
  friend class PipelineBuilder;
  Pipeline(PassManager passes, Instrumentation instrumentation, Substitutions substitutions)
      : passes_(std::move(passes)), instrumentation_(std::move(instrumentation)),
        substitutions_(std::move(substitutions)) {}

  PassManager passes_;
  Instrumentation instrumentation_;
  Substitutions substitutions_;
};

/// Collects the parts of a pipeline. Nothing is registered by default, so the model runs as it was
/// traced.
class PipelineBuilder final {
public:
  PipelineBuilder &registerModuleSubstitution(ModuleSubstitution substitution);
  PipelineBuilder &registerOpSubstitution(OpSubstitution substitution);
  /// Registers a pass of the caller, which runs where setPasses() names it.
  template <class P> PipelineBuilder &registerPass() {
    registered_.push_back(registeredPass<P>());
    return *this;
  }
  llvm::ArrayRef<RegisteredPass> registeredPasses() const { return registered_; }
  /// Replaces defaultPasses().
  PipelineBuilder &setPasses(std::string passes);
  /// Ends the pipeline after this pass or position (PassManager::stopAfter); empty: runs all
  /// passes.
  PipelineBuilder &setStopAfter(std::string passOrPosition);
  PipelineBuilder &setInstrumentation(Instrumentation instrumentation);

  /// Builds the pipeline. Usage if the text of the passes is wrong. Failed, with its name and the
  /// error, for an invalid substitution or a pass whose name is taken.
  Result<Pipeline> build();

private:
  std::string passes_ = defaultPasses(), stopAfter_;
  Instrumentation instrumentation_;
  Substitutions substitutions_;
  std::vector<RegisteredPass> registered_;
};

} // namespace cgc::passes

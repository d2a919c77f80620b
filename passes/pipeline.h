// Pipeline: from an imported module to one specialized graph for each bucket.
#pragma once

#include "passes/manager/instrumentation.h"
#include "passes/manager/pass_manager.h"
#include "passes/substitution/substitutions.h"
#include "passes/train/optimizer_options.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cgc::passes {

/// Selects which of the default passes run.
enum class OptLevel : uint8_t {
  O0, ///< No selection: every op of the model is an op of the plan.
  O1,
};

/// The default pipelines: that of inference, and those of the entries of a training plan.
enum class PipelineKind : uint8_t {
  Inference,
  Step,          ///< A training step: the module, its gradients, and the update.
  FirstGradient, ///< A micro-batch whose gradients overwrite those of the step before.
  NextGradient,  ///< A micro-batch whose gradients are added to those of the ones before it.
  Update,        ///< The update after the micro-batches, for a graph without nodes.
  Evaluate,      ///< The method of a training step, without gradients and update.
};

/// What decides which of the default passes run, and their options.
struct PipelineSettings {
  PipelineKind kind = PipelineKind::Inference;
  DeviceKind target = DeviceKind::Cpu;
  OptLevel level = OptLevel::O1; ///< From O1 on, kernels of several ops are selected for cuda.

  // Of inference.
  std::optional<DType> precision = {};       ///< Floats become this dtype. None: they stay.
  std::vector<std::string> hostModules = {}; ///< Globs of `host-calls`.

  // Of training.
  std::optional<DType> autocast = {}; ///< F16 or BF16: the dtype of matrix products.
  size_t loss = 0;                    ///< The output that is the loss.
  OptimizerOptions optimizer = {};
  std::string recompute = {}; ///< The level of the pass `recompute`; empty: no such pass.
  /// The micro-batches that a batch is computed in; none: it is not split.
  std::optional<uint64_t> microBatches = {};
  bool isDataParallel = false;        ///< Several ranks average their gradients.
  std::optional<uint64_t> ranks = {}; ///< That share a batch and its loss; none: each has its own.
  bool synchronizesBatchNorm = false; ///< Its statistics are those of all ranks' batches.
  bool shardsOptimizer = false;       ///< The ranks divide moments and averages.
};

/// Returns the default passes, in order.
PassList defaultPasses(const PipelineSettings &settings = {});

/// Returns the selection passes, in order. They end the passes of inference for cuda from O1 on.
PassList selectionPasses();

/// A condition on PipelineSettings, with its name in documentation. Always holds without a
/// function.
struct Condition {
  llvm::StringRef name = {};
  bool (*function)(const PipelineSettings &settings) = nullptr;

  bool holds(const PipelineSettings &settings) const { return !function || function(settings); }
};

/// A row of a table of default passes.
struct DefaultPass {
  llvm::StringRef pass;
  llvm::StringRef reason; ///< Why it stands there.
  Condition entries = {}; ///< The entries of a training plan that have it.
  Condition when = {};    ///< What else it depends on.
  /// Returns the options of each of its runs. Null: one run without options.
  std::vector<std::vector<PassOption>> (*runs)(const PipelineSettings &settings) = nullptr;
};

/// The tables of default passes: of inference, of the selection that ends it, and of training.
llvm::ArrayRef<DefaultPass> inferenceTable();
llvm::ArrayRef<DefaultPass> selectionTable();
llvm::ArrayRef<DefaultPass> trainingTable();

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
  PipelineBuilder &setPasses(PassList passes);
  /// The same for a list in its text form.
  PipelineBuilder &setPasses(llvm::StringRef text);
  /// Ends the pipeline after this pass or position (PassManager::stopAfter); empty: runs all
  /// passes.
  PipelineBuilder &setStopAfter(std::string passOrPosition);
  PipelineBuilder &setInstrumentation(Instrumentation instrumentation);

  /// Builds the pipeline. Usage if the text of the passes is wrong. Failed, with its name and the
  /// error, for an invalid substitution or a pass whose name is taken.
  Result<Pipeline> build();

private:
  Result<PassList> passes_ = defaultPasses(); ///< Failed if their text is wrong.
  std::string stopAfter_;
  Instrumentation instrumentation_;
  Substitutions substitutions_;
  std::vector<RegisteredPass> registered_;
};

} // namespace cgc::passes

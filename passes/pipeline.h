// Pipeline: from an imported module to one specialized graph for each bucket.
#pragma once

#include "passes/manager/instrumentation.h"
#include "passes/manager/pass_manager.h"
#include "passes/substitution/substitutions.h"

#include <memory>
#include <optional>
#include <string>

namespace cgc::passes {

/// How much of what runs by default is optional.
enum class OptLevel : uint8_t {
  O0, ///< No selection: every op of the model is an op of the plan.
  O1,
};

/// The passes that run by default, as text for PassManager::parse; with `precision` if floats
/// become another dtype.
std::string defaultPasses(DeviceKind target = DeviceKind::Cpu, OptLevel level = OptLevel::O1,
                          std::optional<DType> precision = std::nullopt);

/// Those of the selection, in order: the default for cuda has them from O1 on.
std::string selectionPasses();

/// Made by PipelineBuilder. First prepare() once, then specialize() for each entry and bucket.
class Pipeline final {
public:
  /// The module phase: afterwards each method of `root` is one flat graph.
  Status prepare(ir::Module &root, PassContext context) const;

  /// The graph phase on a copy of `entry`: a graph called `name` in which every value has a type.
  /// `inputs` are the types of entry's inputs, in order; their device becomes context.target. An
  /// input of dynamic type is left at its default. Usage if their number is wrong. `entry` stays as
  /// it is; its root module may get constants.
  Result<std::unique_ptr<ir::Graph>> specialize(const ir::Graph &entry, std::string name,
                                                llvm::ArrayRef<ir::Type> inputs,
                                                PassContext context) const;

  /// The graph phase on `graph` itself, for IR read from a file.
  Status run(ir::Graph &graph, PassContext context) const;

  /// Call it once when all is done: prints the table of --time-passes.
  void finish() const { instrumentation_.finish(); }

  const PassManager &passes() const { return passes_; }

private:
  friend class PipelineBuilder;
  Pipeline(PassManager passes, Instrumentation instrumentation, Substitutions substitutions)
      : passes_(std::move(passes)), instrumentation_(std::move(instrumentation)),
        substitutions_(std::move(substitutions)) {}

  PassManager passes_;
  Instrumentation instrumentation_;
  Substitutions substitutions_;
};

/// Collects what a pipeline is made of. Nothing is registered by default: what was traced is what
/// runs.
class PipelineBuilder final {
public:
  PipelineBuilder &registerModuleSubstitution(ModuleSubstitution substitution);
  PipelineBuilder &registerOpSubstitution(OpSubstitution substitution);
  /// A pass of the caller's own, which runs where setPasses() names it.
  template <class P> PipelineBuilder &registerPass() {
    registered_.push_back(registeredPass<P>());
    return *this;
  }
  llvm::ArrayRef<RegisteredPass> registeredPasses() const { return registered_; }
  /// Replaces defaultPasses().
  PipelineBuilder &setPasses(std::string passes);
  /// A pass or a position (PassManager::stopAfter); empty: all run.
  PipelineBuilder &setStopAfter(std::string passOrPosition);
  PipelineBuilder &setInstrumentation(Instrumentation instrumentation);

  /// Usage if the passes' text is wrong; Failed, with its name and what is wrong, for a
  /// substitution that cannot be used or a pass whose name is taken.
  Result<Pipeline> build();

private:
  std::string passes_ = defaultPasses(), stopAfter_;
  Instrumentation instrumentation_;
  Substitutions substitutions_;
  std::vector<RegisteredPass> registered_;
};

} // namespace cgc::passes

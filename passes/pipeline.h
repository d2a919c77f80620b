// Pipeline: from an imported module to one specialised graph for each bucket.
#pragma once

#include "passes/instrumentation.h"
#include "passes/pass_manager.h"
#include "passes/substitutions.h"

#include <memory>
#include <optional>
#include <string>

namespace cgc::passes {

/// How much of what runs by default is optional.
enum class OptLevel : uint8_t {
  O0, ///< No selection: every op of the model is an op of the plan.
  O1,
};

/// The passes that run by default, as text for PassManager::parse.
std::string defaultPasses(DeviceKind target = DeviceKind::Cpu, OptLevel level = OptLevel::O1);

/// Those of the selection, in order: the default for cuda has them from O1 on.
std::string selectionPasses();

/// Made by PipelineBuilder. First prepare() once, then specialize() for each entry and bucket.
class Pipeline final {
public:
  /// The module phase: afterwards each method of `root` is one flat graph.
  Status prepare(ir::Module &root, PassContext context) const;

  /// The graph phase on a copy of `entry`: a graph called `name` in which every value has a type.
  /// `inputs` are the types of entry's inputs, in order; their device becomes context.target.
  /// Usage if their number is wrong. `entry` stays as it is; its root module may get constants.
  Result<std::unique_ptr<ir::Graph>> specialize(const ir::Graph &entry, std::string name,
                                                llvm::ArrayRef<ir::TensorType> inputs,
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
    if constexpr (ModulePass<P>)
      registered_.push_back({std::string(P::name),
                             [](ir::Module &m, PassContext &c) { return P().run(m, c); }, nullptr});
    else
      registered_.push_back({std::string(P::name), nullptr,
                             [](ir::Graph &g, PassContext &c) { return P().run(g, c); }});
    return *this;
  }
  llvm::ArrayRef<RegisteredPass> registeredPasses() const { return registered_; }
  /// Replaces defaultPasses().
  PipelineBuilder &setPasses(std::string passes);
  PipelineBuilder &setInstrumentation(Instrumentation instrumentation);

  /// Usage if the passes' text is wrong; Failed, with its name and what is wrong, for a
  /// substitution that cannot be used or a pass whose name is taken.
  Result<Pipeline> build();

private:
  std::string passes_ = defaultPasses();
  Instrumentation instrumentation_;
  Substitutions substitutions_;
  std::vector<RegisteredPass> registered_;
};

} // namespace cgc::passes

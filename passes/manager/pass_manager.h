// PassManager: a pipeline of passes, made from its text form and run on a module and on graphs.
#pragma once

#include "passes/manager/instrumentation.h"
#include "passes/pass.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cgc::passes {

/// A pass with its options, ready to run: one of the two functions is empty.
struct ConfiguredRun {
  bool isRequired = false;
  std::function<Result<Changed>(ir::Module &, PassContext &)> onModule = {};
  std::function<Result<Changed>(ir::Graph &, PassContext &)> onGraph = {};
};

/// A pass that pipelines may name.
struct RegisteredPass {
  std::string name;
  std::function<Result<ConfiguredRun>(PassOptions &)> create;
};

template <class Pass> RegisteredPass registeredPass() {
  static_assert(ModulePass<Pass> != GraphPass<Pass>,
                "a pass has run(ir::Module &, PassContext &) const or run(ir::Graph &, ...) const");
  return {std::string(Pass::name), [](PassOptions &options) -> Result<ConfiguredRun> {
            Pass pass;
            if constexpr (ConfiguredPass<Pass>) {
              CGC_ASSIGN_OR_RETURN(pass, Pass::create(options));
            }
            ConfiguredRun run{.isRequired = RequiredPass<Pass>};
            if constexpr (ModulePass<Pass>)
              run.onModule = [pass](ir::Module &m, PassContext &c) { return pass.run(m, c); };
            else
              run.onGraph = [pass](ir::Graph &g, PassContext &c) { return pass.run(g, c); };
            return run;
          }};
}

/// Usage, with the nearest name, if there is no such pass in passes.def or among `more`.
Status checkPassName(llvm::StringRef name, llvm::ArrayRef<RegisteredPass> more = {});

/// Module passes, then graph passes.
class PassManager final {
public:
  /// Parses names with commas between them, each with its options in braces behind it:
  /// `inline,specialize,precision{to=f16},fold{limit=1024}`. An empty text has no passes. Usage for
  /// an unknown name or option, or for a module pass after a graph pass. `more` are passes beside
  /// those of passes.def.
  static Result<PassManager> parse(llvm::StringRef pipeline,
                                   llvm::ArrayRef<RegisteredPass> more = {});

  /// The inverse of parse, from the pass at `position` on, which is 1 for the first.
  std::string toString(unsigned position = 1) const;

  /// What option `name` of the last pass called `pass` was given as; nothing if it was not.
  std::optional<std::string> option(llvm::StringRef pass, llvm::StringRef name) const;

  /// Drops the passes behind the first that is called `passOrPosition` or has that position. Usage,
  /// with the nearest name, if there is none.
  Status stopAfter(llvm::StringRef passOrPosition);

  /// Runs the module passes, in order, up to the first error.
  Status runModulePasses(ir::Module &module, PassContext &context,
                         const Instrumentation &instrumentation) const;
  /// Runs the graph passes, in order, up to the first error.
  Status runGraphPasses(ir::Graph &graph, PassContext &context,
                        const Instrumentation &instrumentation) const;

private:
  struct Entry {
    std::string name, options; ///< As they were written.
    ConfiguredRun run;
  };
  static Result<Entry> parsePass(llvm::StringRef text, llvm::ArrayRef<RegisteredPass> passes);

  std::vector<Entry> entries_;
};

} // namespace cgc::passes

// PassManager: a pipeline of passes, parsed from text and run on a module and on graphs.
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

/// A pass with its options, ready to run. One of the two functions is empty.
struct ConfiguredRun {
  bool isRequired = false;
  std::function<Result<Changed>(ir::Module &, PassContext &)> onModule = {};
  std::function<Result<Changed>(ir::Graph &, PassContext &)> onGraph = {};
};

/// A pass that pipelines can name.
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

/// Returns Usage, with the nearest name, if neither passes.def nor `more` has this pass.
Status checkPassName(llvm::StringRef name, llvm::ArrayRef<RegisteredPass> more = {});

/// A sequence of module passes followed by graph passes.
class PassManager final {
public:
  /// Parses comma-separated names, each optionally followed by its options in braces:
  /// `inline,specialize,precision{to=f16},fold{limit=1024}`. An empty text has no passes. Usage for
  /// an unknown name or option, or for a module pass after a graph pass. `more` lists passes in
  /// addition to passes.def.
  static Result<PassManager> parse(llvm::StringRef pipeline,
                                   llvm::ArrayRef<RegisteredPass> more = {});

  /// The inverse of parse, starting at the pass at `position` (from 1).
  std::string toString(unsigned position = 1) const;

  /// Returns the text of option `name` of the last pass named `pass`; nullopt if it was not given.
  std::optional<std::string> option(llvm::StringRef pass, llvm::StringRef name) const;

  /// Drops the passes after the first one with the name or position `passOrPosition`. Usage, with
  /// the nearest name, if there is none.
  Status stopAfter(llvm::StringRef passOrPosition);

  /// Runs the module passes, in order, up to the first error.
  Status runModulePasses(ir::Module &module, PassContext &context,
                         const Instrumentation &instrumentation) const;
  /// Runs the graph passes, in order, up to the first error.
  Status runGraphPasses(ir::Graph &graph, PassContext &context,
                        const Instrumentation &instrumentation) const;

private:
  struct Entry {
    std::string name, options; ///< As written in the pipeline text.
    ConfiguredRun run;
  };
  static Result<Entry> parsePass(llvm::StringRef text, llvm::ArrayRef<RegisteredPass> passes);

  std::vector<Entry> entries_;
};

} // namespace cgc::passes

// PassManager: a pipeline of passes, made from its text form and run on a module and on graphs.
#pragma once

#include "passes/instrumentation.h"
#include "passes/pass.h"

#include "llvm/ADT/StringRef.h"

#include <functional>
#include <string>
#include <vector>

namespace cgc::passes {

/// A pass as the manager runs it: one of the two functions is empty.
struct RegisteredPass {
  std::string name;
  std::function<Result<Changed>(ir::Module &, PassContext &)> onModule;
  std::function<Result<Changed>(ir::Graph &, PassContext &)> onGraph;
};

/// Usage, with the nearest name, if there is no such pass in passes.def or among `more`.
Status checkPassName(llvm::StringRef name, llvm::ArrayRef<RegisteredPass> more = {});

/// Module passes, then graph passes.
class PassManager final {
public:
  /// Parses names with commas between them: `inline,specialize,fold`. An empty text has no passes.
  /// Usage for an unknown name, or for a module pass after a graph pass. `more` are passes beside
  /// those of passes.def.
  static Result<PassManager> parse(llvm::StringRef pipeline,
                                   llvm::ArrayRef<RegisteredPass> more = {});

  /// The inverse of parse.
  std::string toString() const;

  /// Runs the module passes, in order, up to the first error.
  Status runModulePasses(ir::Module &module, PassContext &context,
                         const Instrumentation &instrumentation) const;
  /// Runs the graph passes, in order, up to the first error.
  Status runGraphPasses(ir::Graph &graph, PassContext &context,
                        const Instrumentation &instrumentation) const;

private:
  std::vector<RegisteredPass> entries_;
};

} // namespace cgc::passes

// PassManager: a pipeline of passes, made from its text form and run on a module and on graphs.
#pragma once

#include "passes/instrumentation.h"
#include "passes/pass.h"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace cgc::passes {

/// Usage, with the nearest name, if there is no such pass.
Status checkPassName(llvm::StringRef name);

/// Module passes, then graph passes.
class PassManager final {
public:
  /// Parses names with commas between them: `inline,specialize,fold`. An empty text has no passes.
  /// Usage for an unknown name, or for a module pass after a graph pass.
  static Result<PassManager> parse(llvm::StringRef pipeline);

  /// The inverse of parse.
  std::string toString() const;

  /// Runs the module passes, in order, up to the first error.
  Status runModulePasses(ir::Module &module, PassContext &context,
                         const Instrumentation &instrumentation) const;
  /// Runs the graph passes, in order, up to the first error.
  Status runGraphPasses(ir::Graph &graph, PassContext &context,
                        const Instrumentation &instrumentation) const;

private:
  /// One of the two functions is null.
  struct Entry {
    std::string_view name;
    Result<Changed> (*onModule)(ir::Module &, PassContext &) = nullptr;
    Result<Changed> (*onGraph)(ir::Graph &, PassContext &) = nullptr;
  };
  static llvm::ArrayRef<Entry> allPasses();
  friend Status checkPassName(llvm::StringRef name);

  std::vector<Entry> entries_;
};

} // namespace cgc::passes

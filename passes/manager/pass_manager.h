// PassManager: a pipeline that is ready to run, on a module and on graphs.
#pragma once

#include "passes/manager/instrumentation.h"
#include "passes/manager/pass_list.h"
#include "passes/manager/registered_pass.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace cgc::passes {

/// Returns the passes of passes.def, in that order, followed by `more`.
std::vector<RegisteredPass> allPasses(llvm::ArrayRef<RegisteredPass> more = {});

/// Returns Usage, with the nearest name, if neither passes.def nor `more` has this pass.
Status checkPassName(llvm::StringRef name, llvm::ArrayRef<RegisteredPass> more = {});

/// Returns Usage, with the passes that explain, unless `name` is a pass that does.
Status checkExplains(llvm::StringRef name, llvm::ArrayRef<RegisteredPass> more = {});

/// A sequence of module passes followed by graph passes.
class PassManager final {
public:
  /// Usage for an unknown name or option, or for a module pass after a graph pass. `more` lists
  /// passes in addition to passes.def.
  static Result<PassManager> create(PassList passes, llvm::ArrayRef<RegisteredPass> more = {});
  /// The same for a list in its text form.
  static Result<PassManager> parse(llvm::StringRef text, llvm::ArrayRef<RegisteredPass> more = {});

  /// The text form of the list, starting at the pass at `position` (from 1).
  std::string toString(unsigned position = 1) const;

  /// Returns the text of option `name` of the last pass named `pass`; nullopt if it was not given.
  std::optional<std::string> option(llvm::StringRef pass, llvm::StringRef name) const;

  /// Returns true if a pass of the pipeline has this name.
  bool contains(llvm::StringRef pass) const;

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
  PassList passes_;
  std::vector<ConfiguredRun> runs_; ///< Of each pass of passes_.
};

} // namespace cgc::passes

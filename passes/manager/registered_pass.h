// RegisteredPass: a pass as the pass manager sees it, made from its type.
#pragma once

#include "passes/pass.h"

#include <functional>
#include <string>

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
  bool explains = false; ///< --explain can name it.
  std::function<Result<ConfiguredRun>(PassOptions &)> create;
};

template <class Pass> RegisteredPass registeredPass() {
  static_assert(ModulePass<Pass> != GraphPass<Pass>,
                "a pass has run(ir::Module &, PassContext &) const or run(ir::Graph &, ...) const");
  return {std::string(Pass::name), ExplainingPass<Pass>,
          [](PassOptions &options) -> Result<ConfiguredRun> {
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

/// Defines the function by which pass_manager.cpp finds the pass of a row of passes.def. Belongs
/// into the pass's source file, in namespace cgc::passes.
#define CGC_DEFINE_PASS(Type)                                                                      \
  RegisteredPass registered##Type() {                                                              \
    return registeredPass<Type>();                                                                 \
  }

} // namespace cgc::passes

// Helpers for tests of passes: modules from text, and running a pipeline.
#pragma once

#include "ir/text.h"
#include "passes/pass_manager.h"

#include "gtest/gtest.h"

namespace cgc::passes {

inline std::unique_ptr<ir::Module> parse(llvm::StringRef text) {
  ir::Diagnostics diagnostics;
  auto module = ir::parseModule(text, "test.cgir", diagnostics);
  EXPECT_TRUE(module) << diagnostics.render();
  return module;
}

/// Runs `pipeline` on `module` and on each graph of its root.
inline Status runPasses(ir::Module &module, llvm::StringRef pipeline, PassContext context = {},
                        const Instrumentation &instrumentation = {}) {
  CGC_ASSIGN_OR_RETURN(PassManager passes, PassManager::parse(pipeline));
  CGC_TRY(passes.runModulePasses(module, context, instrumentation));
  for (const auto &graph : module.graphs())
    CGC_TRY(passes.runGraphPasses(*graph, context, instrumentation));
  return Status::ok();
}

} // namespace cgc::passes

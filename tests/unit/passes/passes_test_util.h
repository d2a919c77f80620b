// Helpers for tests of passes: parse modules, run a pipeline, and misbehave inside a pass.
#pragma once

#include "ir/text/text.h"
#include "passes/manager/pass_manager.h"
#include "passes/substitution/substitutions.h"

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

/// Returns a substitution that calls `atNeg` for each neg, so that a test can misbehave inside a
/// pass.
inline Substitutions misbehaving(std::function<Result<ir::Value *>(ir::Node &)> atNeg) {
  OpSubstitution substitution;
  substitution.name = "test";
  substitution.pattern = "graph @p(%x: dynamic) {\n  %0 = aten.neg(%x) : dynamic\n  output %0\n}";
  substitution.replace = [atNeg](const OpMatch &match, ir::GraphRewriter &) {
    return atNeg(match.root);
  };
  return {.modules = {}, .ops = {std::move(substitution)}};
}

} // namespace cgc::passes

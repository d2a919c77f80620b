// run_pipeline: runs pipelines on IR text in tests.
#include "tests/filetests/run_pipeline.h"

#include "ir/text/text.h"
#include "passes/manager/pass_manager.h"
#include "tests/filetests/test_evaluator.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace cgc {

std::string readFile(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::unique_ptr<ir::Module> parsedAndVerified(llvm::StringRef text, const std::string &name) {
  ir::Diagnostics diagnostics;
  auto module = ir::parseAndVerify(text, name, diagnostics);
  EXPECT_TRUE(module) << diagnostics.render();
  return module;
}

namespace {

/// Gives each parameter distinct bytes: text holds none, and equal weights would be merged.
void fillParameters(ir::Module &module, uint8_t &next) {
  for (const ir::Parameter &parameter : module.parameters()) {
    std::vector<std::byte> bytes(parameter.type.numBytes(), std::byte{next++});
    module.setParameterData(parameter.name, ir::TensorData::copyOf(parameter.type, bytes));
  }
  for (const auto &submodule : module.submodules())
    fillParameters(*submodule, next);
}

} // namespace

std::unique_ptr<ir::Module> compilable(llvm::StringRef text, const fs::path &path) {
  auto module = parsedAndVerified(text, path.filename().string());
  uint8_t next = 1;
  if (module)
    fillParameters(*module, next);
  return module;
}

namespace {

/// Runs `passes` on `module`, with the environment that the file tests give to passes.
Status run(const passes::PassManager &passes, ir::Module &module,
           const passes::Instrumentation &instrumentation) {
  ir::Diagnostics diagnostics;
  passes::Substitutions none;
  FileTestEvaluator evaluator;
  passes::PassContext context{
      .evaluator = &evaluator, .substitutions = &none, .diagnostics = &diagnostics};
  CGC_TRY(passes.runModulePasses(module, context, instrumentation));
  for (const auto &graph : module.graphs())
    CGC_TRY(passes.runGraphPasses(*graph, context, instrumentation));
  return Status::ok();
}

} // namespace

std::optional<std::string> runPipeline(const fs::path &path, llvm::StringRef text,
                                       llvm::StringRef pipeline, std::set<std::string> *changing) {
  auto passes = passes::PassManager::parse(pipeline);
  EXPECT_TRUE(passes) << path << ": " << passes.status().message();
  auto module = compilable(text, path);
  if (!passes || !module)
    return std::nullopt;
  auto instrumentation = passes::makeInstrumentation({}, llvm::nulls());
  EXPECT_TRUE(instrumentation) << instrumentation.status().message();
  instrumentation->add({.after =
                            [&](const passes::PassRun &run, passes::Changed changed) {
                              if (changing && changed == passes::Changed::Yes)
                                changing->emplace(run.pass);
                              return Status::ok();
                            },
                        .failed =
                            [&](const passes::PassRun &run, const Status &status) {
                              // A refusal counts: it is the tested behavior of some passes.
                              if (changing && status.code() == Code::Unsupported)
                                changing->emplace(run.pass);
                            }});
  const Status status = run(*passes, *module, *instrumentation);
  // A pass may refuse the model, and tests of refusals check the message. It must not break the IR.
  EXPECT_TRUE(status.isOk() || status.code() == Code::Unsupported) << status.message();
  return status.isOk() ? ir::toString(*module) : "failed: " + status.message();
}

std::optional<std::string> explainPass(const fs::path &path, llvm::StringRef text,
                                       llvm::StringRef pass) {
  std::string output;
  llvm::raw_string_ostream log(output);
  auto passes = passes::PassManager::parse(pass);
  auto instrumentation = passes::makeInstrumentation({.explain = pass.str()}, log);
  EXPECT_TRUE(passes && instrumentation) << path << ": " << instrumentation.status().message();
  auto module = compilable(text, path);
  if (!passes || !instrumentation || !module)
    return std::nullopt;
  const Status status = run(*passes, *module, *instrumentation);
  EXPECT_TRUE(status.isOk()) << path << ": " << status.message();
  instrumentation->finish();
  return output;
}

} // namespace cgc

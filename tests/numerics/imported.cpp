// Imported: runs the frontend, then `inline,specialize`.
#include "tests/numerics/imported.h"
#include "tests/paths.h"

#include "frontend/frontend.h"
#include "ir/verifier.h"
#include "passes/pipeline.h"

#include <gtest/gtest.h>

#include <fstream>

namespace cgc::test {

std::unique_ptr<ir::Module> import(const std::string &path) {
  auto module = frontend::importTorchScript(path);
  EXPECT_TRUE(module.isOk()) << module.status().message();
  if (!module)
    return nullptr;
  ir::Diagnostics diagnostics;
  EXPECT_TRUE(ir::verify(**module, diagnostics)) << diagnostics.render();
  return *std::move(module);
}

std::unique_ptr<ir::Graph> specialize(ir::Module &module, const std::string &method,
                                      std::vector<ir::Type> inputs, ir::Diagnostics &diagnostics) {
  auto pipeline = passes::PipelineBuilder().setPasses("inline,specialize").build();
  const passes::PassContext context{.target = DeviceKind::Cpu, .diagnostics = &diagnostics};
  if (!pipeline || !pipeline->prepare(module, context).isOk())
    return nullptr;
  auto graph = pipeline->specialize(*module.findGraph(method), "graph", inputs, context);
  if (graph)
    return *std::move(graph);
  EXPECT_EQ(graph.status().code(), Code::Unsupported);
  return nullptr;
}

std::unique_ptr<ir::Graph> specialize(const std::string &path, const std::string &method,
                                      std::vector<ir::Type> inputs, ir::Diagnostics &diagnostics) {
  auto module = import(path);
  return module ? specialize(*module, method, std::move(inputs), diagnostics) : nullptr;
}

std::vector<ir::Diagnostic> offenders(const std::string &path, std::vector<ir::Type> inputs,
                                      const std::string &method) {
  ir::Diagnostics diagnostics;
  specialize(path, method, std::move(inputs), diagnostics);
  return diagnostics.errors().vec();
}

ir::Type floats(std::vector<int64_t> sizes) {
  return ir::TensorType::dense(DType::F32, sizes);
}

unsigned lineOf(const std::string &tag) {
  std::ifstream file(sourceDir() / "tests/numerics/small_models.py");
  std::string line;
  for (unsigned number = 1; std::getline(file, line); ++number)
    if (line.ends_with("# LINE: " + tag))
      return number;
  return 0;
}

} // namespace cgc::test

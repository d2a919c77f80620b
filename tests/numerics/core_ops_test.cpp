// Core ops: each op of PyTorch's Core ATen opset, and its in-place form, computes the result of
// LibTorch or is refused with its cause. So do ops that the import composes. core_ops.py has the
// calls and checks that no op of the opset is missing.
#include "ir/offenders.h"
#include "passes/pipeline.h"
#include "tests/numerics/imported.h"
#include "tests/numerics/lowered_graph.h"
#include "tests/numerics/test_models.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace cgc::test {
namespace {

std::vector<at::Tensor> tensorsOf(const c10::IValue &value) {
  return value.isTuple() ? c10::fmap(value.toTupleRef().elements(),
                                     [](const c10::IValue &element) { return element.toTensor(); })
                         : std::vector<at::Tensor>{value.toTensor()};
}

/// Returns the graph of one method for `x` with its in-place ops replaced; null if it is refused.
std::unique_ptr<ir::Graph> compile(const passes::Pipeline &pipeline, const ir::Graph &method,
                                   const ir::Type &x, ir::Diagnostics &diagnostics) {
  auto graph = pipeline.specialize(method, method.name(), {x},
                                   {.target = DeviceKind::Cpu, .diagnostics = &diagnostics});
  return graph ? *std::move(graph) : nullptr;
}

void expectEqual(const std::vector<at::Tensor> &actual, const std::vector<at::Tensor> &expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].sizes(), expected[i].sizes());
    ASSERT_EQ(actual[i].scalar_type(), expected[i].scalar_type());
    EXPECT_TRUE(at::allclose(actual[i].to(at::kDouble), expected[i].to(at::kDouble), 1e-5, 1e-6,
                             /*equal_nan=*/true))
        << actual[i] << "\nexpected\n"
        << expected[i];
  }
}

TEST(CoreOps, AreComputedOrRefusedWithTheirCause) {
  std::ifstream table(coreOps("core_ops.txt"));
  auto reference = torch::jit::load(coreOps("core_ops.pt"));
  auto module = import(coreOps("core_ops.pt"));
  ASSERT_TRUE(module);
  auto pipeline = passes::PipelineBuilder()
                      .setPasses("inline,specialize,canonicalize,random-numbers,dce")
                      .build();
  ASSERT_TRUE(pipeline && pipeline->prepare(*module, {.target = DeviceKind::Cpu}).isOk());
  auto random = at::detail::createCPUGenerator(7);
  const ir::Type type = floats({2, 3, 4, 5});
  const at::Tensor x = randomTensor(type.tensor(), 3, random);
  size_t computed = 0, refused = 0;
  for (std::string method, op, state; table >> method >> op >> state;) {
    SCOPED_TRACE(op);
    ir::Diagnostics diagnostics;
    auto graph = compile(*pipeline, *module->findGraph(method), type, diagnostics);
    if (state != "computed") {
      ++refused;
      EXPECT_FALSE(graph) << "it is computed";
      ASSERT_FALSE(diagnostics.errors().empty());
      EXPECT_EQ(ir::textOf(diagnostics.errors().front().cause).id, state) << diagnostics.render();
      continue;
    }
    ++computed;
    if (!graph) {
      ADD_FAILURE() << diagnostics.render();
      continue;
    }
    LoweredGraph lowered(*graph);
    if (!lowered.isOk())
      continue;
    auto outputs = lowered.run(method, {x});
    if (!outputs) {
      ADD_FAILURE() << outputs.status().message();
      continue;
    }
    expectEqual(*outputs, tensorsOf(reference.get_method(method)({x})));
  }
  EXPECT_GT(computed, 200u);
  EXPECT_GE(refused, 9u);
}

} // namespace
} // namespace cgc::test

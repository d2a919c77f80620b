// BatchRules: what the ops' rules say about the rows of a batch (OpDef::batch) is true of LibTorch.
// Each `; numerics` graph of the file tests is tried with every dimension of its inputs as a batch.
#include "ir/text/text.h"
#include "passes/batch_flow.h"
#include "tests/numerics/libtorch_call.h"
#include "tests/numerics/lowered_graph.h"
#include "tests/numerics/op_tests.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <gtest/gtest.h>

#include <set>

namespace cgc::test {
namespace {

using Tensors = std::vector<at::Tensor>;
/// The batch dimension of each input; nothing for an input that all rows share.
using InputDims = std::vector<std::optional<int64_t>>;

/// A batch of a graph: its size and the dimensions of the inputs.
struct Batch {
  int64_t size;
  InputDims dims;
};

std::unique_ptr<ir::Module> parsed(const std::string &text) {
  ir::Diagnostics diagnostics;
  auto module = ir::parseAndVerify(text, "case", diagnostics);
  EXPECT_TRUE(module) << diagnostics.render();
  if (module)
    inferTypes(*module->findGraph("g"));
  return module;
}

/// All choices of dimensions of equal size for some inputs, up to a limit.
std::vector<Batch> batchesOf(const ir::Graph &graph) {
  constexpr size_t kMost = 100;
  std::set<int64_t> sizes;
  for (const ir::Value *input : graph.inputs())
    for (int64_t size : input->tensor().sizes)
      if (size > 1)
        sizes.insert(size);
  std::vector<Batch> batches;
  for (int64_t size : sizes) {
    std::vector<InputDims> choices = {{}};
    for (const ir::Value *input : graph.inputs()) {
      std::vector<InputDims> longer;
      for (const InputDims &choice : choices) {
        longer.push_back(choice);
        longer.back().push_back(std::nullopt);
        for (int64_t dim = 0; dim < input->tensor().rank(); ++dim)
          if (input->tensor().sizes[dim] == size && longer.size() < kMost) {
            longer.push_back(choice);
            longer.back().push_back(dim);
          }
      }
      choices = std::move(longer);
    }
    for (InputDims &dims : choices)
      if (std::ranges::any_of(dims, [](const auto &dim) { return dim.has_value(); }))
        batches.push_back({size, std::move(dims)});
  }
  return batches;
}

/// The tensor with the rows of a batch in a dimension of their own, the first.
at::Tensor rowsOf(const at::Tensor &tensor, const ir::BatchState &state, int64_t batch) {
  auto sizes = tensor.sizes().vec();
  const int64_t outer = sizes[state.dim] / (state.inner * batch);
  sizes[state.dim] = state.inner;
  sizes.insert(sizes.begin() + state.dim, {outer, batch});
  return tensor.reshape(sizes).movedim(state.dim + 1, 0);
}

bool isSame(const at::Tensor &a, const at::Tensor &b) {
  return at::allclose(a.to(at::kDouble), b.to(at::kDouble), 1e-5, 1e-6, /*equal_nan=*/true);
}

class BatchRules : public testing::TestWithParam<NumericsCase> {
protected:
  /// Random inputs of the graph, always the same.
  Tensors inputs(const ir::Graph &graph, uint64_t seed) const {
    at::Generator random = at::detail::createCPUGenerator(seed);
    Tensors tensors;
    for (const ir::Value *input : graph.inputs())
      tensors.push_back(randomTensor(input->tensor(), GetParam().bound, random));
    return tensors;
  }
};

/// Row 0 does not change when other rows do; rows that move give results that move; what no row is
/// to determine stays.
TEST_P(BatchRules, AreTrueOfLibTorch) {
  const std::string &text = GetParam().reference;
  const auto module = parsed(text);
  ASSERT_TRUE(module);
  const ir::Graph &graph = *module->findGraph("g");
  const Tensors x = inputs(graph, 7), others = inputs(graph, 8);
  const Tensors y = runWithLibTorch(text, x);
  for (const Batch &batch : batchesOf(graph)) {
    const passes::BatchFlow flow(graph, batch.dims, batch.size);
    Tensors changed = x, moved = x;
    for (size_t i = 0; i < x.size(); ++i)
      if (const auto dim = batch.dims[i]) {
        changed[i] =
            at::cat({x[i].narrow(*dim, 0, 1), others[i].narrow(*dim, 1, batch.size - 1)}, *dim);
        moved[i] = at::roll(x[i], 1, *dim);
      }
    std::optional<std::pair<Tensors, Tensors>> results; // Computed if something is claimed.
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      const ir::BatchState state = flow.state(*graph.outputs()[i].value());
      if (state.kind == ir::BatchState::Mixed)
        continue;
      if (!results)
        results = {runWithLibTorch(text, changed), runWithLibTorch(text, moved)};
      const auto &[afterChange, afterMove] = *results;
      std::string dims;
      for (const auto &dim : batch.dims)
        dims += dim ? " " + std::to_string(*dim) : " -";
      SCOPED_TRACE("batch " + std::to_string(batch.size) + " in dimensions" + dims + ", output " +
                   std::to_string(i) + ": " + toString(state));
      if (state.kind != ir::BatchState::Rows) {
        EXPECT_TRUE(isSame(afterChange[i], y[i]));
        EXPECT_TRUE(isSame(afterMove[i], y[i]));
        continue;
      }
      const auto rows = [&](const at::Tensor &t) { return rowsOf(t, state, batch.size); };
      EXPECT_TRUE(isSame(rows(afterChange[i])[0], rows(y[i])[0])) << "rows are not independent";
      EXPECT_TRUE(isSame(rows(afterMove[i]), at::roll(rows(y[i]), 1, 0))) << "rows are not alike";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, BatchRules, testing::ValuesIn(opTests().cases),
                         [](const auto &info) { return info.param.name; });

/// A rule that no case proves anything of is not tested.
TEST(BatchRulesCases, ProveRowsOfEveryRule) {
  std::set<ir::OpKind> proven = {ir::OpKind::Arange, ir::OpKind::Full}; // They have no arguments.
  for (const NumericsCase &c : opTests().cases) {
    const auto module = parsed(c.reference);
    if (!module)
      continue;
    const ir::Graph &graph = *module->findGraph("g");
    for (const Batch &batch : batchesOf(graph)) {
      const passes::BatchFlow flow(graph, batch.dims, batch.size);
      for (const ir::Node &node : graph)
        if (node.kind() == ir::NodeKind::CallFunction &&
            flow.state(*node.result()).kind == ir::BatchState::Rows)
          proven.insert(node.op());
    }
  }
  std::string missing;
  for (unsigned i = 0; i < ir::kNumOps; ++i) {
    const auto op = static_cast<ir::OpKind>(i);
    if (ir::opDef(op).batch && !proven.contains(op))
      missing += " " + ir::opName(op).str();
  }
  EXPECT_EQ(missing, "");
}

} // namespace
} // namespace cgc::test

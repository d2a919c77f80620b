// Canonicalize as a whole: random chains of views keep their addresses, copies are removed only
// where that is safe, and a second run changes nothing.
#include "passes/canonicalize/canonicalize.h"
#include "tests/paths.h"

#include "ir/verifier.h"
#include "passes/match.h"
#include "tests/unit/passes/passes_test_util.h"

#include "gmock/gmock.h"

#include <fstream>
#include <random>
#include <sstream>

namespace cgc::passes {
namespace {

/// Appends a random view of `value`, or occasionally a copy.
ir::Value *randomStep(ir::Graph &graph, ir::Value *value, std::mt19937 &random) {
  const ir::TensorType &type = value->tensor();
  auto pick = [&](int64_t count) { return static_cast<int64_t>(random() % count); };
  int64_t dim = type.rank() ? pick(type.rank()) : 0;
  ir::OpKind op = ir::OpKind::Unsqueeze;
  std::vector<ir::Arg> args = {value, pick(type.rank() + 1)};
  switch (type.rank() ? pick(8) : 0) {
  case 1:
    op = ir::OpKind::Transpose;
    args = {value, dim, pick(type.rank())};
    break;
  case 2: {
    op = ir::OpKind::Reshape;
    ir::Dims sizes = type.sizes;
    int64_t divisor = 1 + pick(4);
    if (sizes[dim] % divisor == 0) {
      sizes[dim] /= divisor;
      sizes.insert(sizes.begin() + dim, divisor);
    }
    args = {value, ir::Arg::ints(sizes)};
    break;
  }
  case 3:
    op = ir::OpKind::Flatten;
    args = {value, dim, dim + pick(type.rank() - dim)};
    break;
  case 4: {
    op = ir::OpKind::Slice;
    int64_t start = pick(type.sizes[dim]);
    args = {value, dim, start, start + 1 + pick(type.sizes[dim] - start), 1 + pick(2)};
    break;
  }
  case 5:
    op = ir::OpKind::Select;
    args = {value, dim, pick(type.sizes[dim])};
    break;
  case 6:
    op = ir::OpKind::Contiguous;
    args = {value};
    break;
  case 7: {
    op = ir::OpKind::Expand;
    ir::Dims sizes = type.sizes;
    if (sizes[dim] == 1)
      sizes[dim] = 3;
    args = {value, ir::Arg::ints(sizes), false};
    break;
  }
  default:
    break;
  }
  args.resize(ir::opSchema(op).args.size(), ir::Arg());
  auto inferred = ir::inferResults(op, args, DeviceKind::Cpu);
  EXPECT_TRUE(inferred) << ir::opName(op).str() << ": " << inferred.status().message();
  ir::Node *node = graph.call(op, args, 1, ir::Loc::unknown());
  node->result()->setType((*inferred)[0].type);
  return node->result();
}

/// Returns the input's element numbers in the order in which `value` shows them, followed through
/// views and copies of views to the graph's input.
std::vector<int64_t> elementsOf(ir::Value *value) {
  Layout layout = layoutOf(value);
  const ir::TensorType &type = value->tensor();
  std::vector<int64_t> positions = {layout.offset};
  for (int64_t dim = 0; dim < type.rank(); ++dim) {
    std::vector<int64_t> next;
    for (int64_t position : positions)
      for (int64_t i = 0; i < type.sizes[dim]; ++i)
        next.push_back(position + i * type.strides[dim]);
    positions = std::move(next);
  }
  if (layout.base->node()->kind() == ir::NodeKind::Placeholder)
    return positions;
  // A copy holds the elements in its own memory.
  std::vector<int64_t> source = elementsOf(ir::aliasedArg(*layout.base->node()).value());
  for (int64_t &position : positions)
    position = source[position];
  return positions;
}

TEST(CanonicalizeTest, RandomViewChainsKeepWhatTheyAddress) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    ir::Graph graph("g");
    ir::Value *value =
        graph.placeholder("x", ir::TensorType::dense(DType::F32, {2, 6, 4}), ir::Loc::unknown())
            ->result();
    for (unsigned length = 1 + random() % 7; length > 0; --length)
      value = randomStep(graph, value, random);
    ir::Node *softmax = graph.call(ir::OpKind::Exp, {value}, 1, ir::Loc::unknown());
    softmax->result()->setType(ir::TensorType::dense(DType::F32, value->tensor().sizes));
    graph.createOutput({ir::Arg(softmax->result())}, ir::Loc::unknown());
    std::vector<int64_t> before = elementsOf(value);
    std::string text = ir::toString(graph);

    PassContext context;
    auto changed = CanonicalizePass().run(graph, context);
    ASSERT_TRUE(changed) << changed.status().message() << text;
    ir::Diagnostics diagnostics;
    EXPECT_TRUE(ir::verify(graph, diagnostics)) << diagnostics.render() << text;
    EXPECT_EQ(elementsOf(softmax->arg("self").value()), before) << text << ir::toString(graph);
    auto again = CanonicalizePass().run(graph, context);
    EXPECT_TRUE(again && *again == Changed::No) << text << ir::toString(graph);
    if (HasFailure())
      return;
  }
}

/// Runs the pipeline twice on every file test of the passes: the second run must change nothing.
TEST(CanonicalizeTest, ASecondRunChangesNothing) {
  for (const char *name : {"packed_mha", "native_mha", "merge_linears", "views", "copies",
                           "identities", "query_scale", "in_place"}) {
    std::ostringstream text;
    text << std::ifstream((test::sourceDir() / "tests/filetests/passes/canonicalize_").string() +
                          name + ".cgir")
                .rdbuf();
    auto module = parse(text.str());
    ASSERT_TRUE(module);
    const char *pipeline = "specialize,canonicalize,fold,cse,dce";
    ASSERT_TRUE(runPasses(*module, pipeline).isOk()) << name;
    std::string once = ir::toString(*module);
    ASSERT_TRUE(runPasses(*module, pipeline).isOk()) << name;
    EXPECT_EQ(ir::toString(*module), once) << name;
  }
}

TEST(CanonicalizeTest, RefusedMutationReachesTheCallersDiagnostics) {
  auto module = parse(R"(
graph @g(%x: f32[2]) {
  %0 = aten.relu_(%x) : f32[2] loc("a.py":1)
  output %0
})");
  ir::Diagnostics diagnostics;
  Status status = runPasses(*module, "canonicalize", {.diagnostics = &diagnostics});
  EXPECT_EQ(status.code(), Code::Unsupported);
  ASSERT_EQ(diagnostics.errors().size(), 1u);
  EXPECT_EQ(diagnostics.errors()[0].loc.line, 1u);
}

TEST(AcceptsStridesTest, FollowsViewsToWhatReadsThem) {
  auto module = parse(R"(
graph @g(%x: f32[4,6], %w: f32[5,6]) {
  %0 = aten.exp(%x) : f32[4,6]
  %1 = aten.view(%0) {size=[2, 2, 6]} : f32[2,2,6]
  %2 = aten.neg(%1) : f32[2,2,6]
  %3 = aten.exp(%x) : f32[4,6]
  %4 = aten.view(%3) {size=[24]} : f32[24]
  %5 = aten.neg(%4) : f32[24]
  %6 = aten.exp(%x) : f32[4,6]
  %7 = aten.linear(%6, %w) : f32[4,5]
  %8 = aten.exp(%x) : f32[4,6]
  output %2, %5, %7, %8
})");
  ir::Graph &graph = *module->findGraph("g");
  auto result = [&](llvm::StringRef name) -> ir::Value * {
    for (ir::Node &node : graph)
      if (node.numResults() && node.result()->name() == name)
        return node.result();
    return nullptr;
  };
  ir::TensorType rows = result("0")->tensor(), columns = rows;
  rows.strides = {18, 1};   // Rows of a wider tensor.
  columns.strides = {1, 4}; // Transposed.
  EXPECT_FALSE(findStridesRefused(result("0"), rows)) << "splitting rows is a view at any stride";
  EXPECT_FALSE(findStridesRefused(result("0"), columns));
  EXPECT_TRUE(findStridesRefused(result("3"), rows)) << "the view would become a copy";
  EXPECT_TRUE(findStridesRefused(result("6"), columns)) << "linear wants dense rows";
  EXPECT_TRUE(findStridesRefused(result("8"), rows)) << "an output keeps its layout";
}

} // namespace
} // namespace cgc::passes

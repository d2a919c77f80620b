// shape_rules: compares each op's type rule with LibTorch's results over a grid of arguments.
//
// The number of results, their dtypes and sizes must always agree, and so must acceptance of the
// arguments. Where the rule says "view", LibTorch must return one with the same strides and offset,
// and vice versa. Strides of fresh results are compared for contiguous arguments only: LibTorch
// lets some ops keep a permuted memory format, while cgc's compute ops write dense row-major
// results. Then compares what plans for cuda compute in some of these calls. gradient_rules
// compares the gradients of such calls.
#include "ir/graph.h"
#include "ir/op_def.h"
#include "ir/text/text.h"
#include "tests/numerics/grid_call.h"
#include "tests/numerics/libtorch_call.h"
#include "tests/numerics/lowered_graph.h"
#include "tests/numerics/op_tests.h"

#include "llvm/ADT/StringExtras.h"

#include <ATen/ATen.h>
#include <ATen/core/Tensor.h>
#include <c10/core/InferenceMode.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace cgc::test {
namespace {

using ir::Arg;
using ir::TensorType;

/// Returns true if two stride lists address the same elements: strides of size-1 dimensions do not
/// matter.
bool sameLayout(const TensorType &type, at::IntArrayRef strides) {
  for (int64_t d = 0; d < type.rank(); ++d)
    if (type.sizes[d] != 1 && type.strides[d] != strides[d])
      return type.numElements() == 0;
  return true;
}

/// Returns why one result differs; empty if it does not.
std::string typeDifference(const Grid &grid, const ir::Inferred &expected, const at::Tensor &actual,
                           const GridCall &call) {
  const TensorType &type = expected.type;
  if (!actual.defined()) // LibTorch returns no empty tensor; cgc does.
    return type.numElements() == 0 ? "" : "LibTorch gives no tensor";
  if (actual.scalar_type() != torchType(type.dtype))
    return std::string("LibTorch's dtype is ") + c10::toString(actual.scalar_type());
  auto text = [](at::IntArrayRef values) { return ::testing::PrintToString(values.vec()); };
  if (actual.sizes() != at::IntArrayRef(type.sizes.data(), type.sizes.size()))
    return "LibTorch's sizes are " + text(actual.sizes());
  auto self = call.self();
  bool isView = self && actual.is_alias_of(*self);
  if (isView != expected.viewOffset.has_value())
    return isView ? "LibTorch returns a view" : "LibTorch returns a copy";
  if (isView) {
    if (actual.strides() != at::IntArrayRef(type.strides.data(), type.strides.size()))
      return "LibTorch's strides are " + text(actual.strides());
    if (actual.storage_offset() - self->storage_offset() != *expected.viewOffset)
      return "LibTorch's offset is " + std::to_string(actual.storage_offset());
    return "";
  }
  // Attention keeps the order of the query's dimensions; LibTorch's strides depend on the kernel.
  if (grid.op == ir::OpKind::ScaledDotProductAttention)
    return "";
  if (!type.isContiguous())
    return "a fresh result must be contiguous";
  if (call.allContiguous() && !sameLayout(type, actual.strides()))
    return "LibTorch's strides are " + text(actual.strides());
  return "";
}

class ShapeRules : public ::testing::TestWithParam<Grid> {};

TEST_P(ShapeRules, AgreeWithLibTorch) {
  c10::InferenceMode guard;
  const Grid &grid = GetParam();
  size_t compared = 0, failures = 0;
  for (size_t number = 0; number < numCalls(grid) && failures < 10; ++number) {
    const std::vector<std::string> texts = choose(grid, number);
    const std::string line =
        grid.where + ": " + ir::opName(grid.op).str() + "(" + llvm::join(texts, ", ") + ")";
    GridCall call(grid, texts);
    auto inferred = ir::inferResults(grid.op, call.args(), DeviceKind::Cpu);
    std::string error;
    auto actual = call.runLibTorch(error);
    if (!inferred.isOk() || !actual) {
      bool allowed = inferred.isOk() == actual.has_value() ||
                     (actual ? grid.strictness == Strictness::MayRefuse
                             : grid.strictness == Strictness::MayAccept);
      if (!allowed) {
        ++failures;
        ADD_FAILURE() << line << "\n"
                      << (actual ? "LibTorch accepts, cgc refuses: " + inferred.status().message()
                                 : "cgc accepts, LibTorch refuses: " + error);
      }
      continue;
    }
    ++compared;
    if (inferred->size() != actual->size()) {
      ++failures;
      ADD_FAILURE() << line << "\nLibTorch has " << actual->size() << " results, cgc "
                    << inferred->size();
      continue;
    }
    for (size_t i = 0; i < actual->size(); ++i) {
      std::string why = typeDifference(grid, (*inferred)[i], (*actual)[i], call);
      if (!why.empty()) {
        ++failures;
        ADD_FAILURE() << line << "\ncgc's result " << i << " is "
                      << ir::toString((*inferred)[i].type) << ", but " << why;
      }
    }
  }
  if (grid.strictness != Strictness::MayRefuse) {
    EXPECT_GT(compared, 0u) << "no combination is accepted by both";
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, ShapeRules, ::testing::ValuesIn(opTests().grids),
                         [](const auto &info) { return info.param.name; });

/// `like` with numbers that rules treat apart: zeros, signs, halves and integers.
at::Tensor specialNumbers(const at::Tensor &like) {
  const at::Tensor numbers = at::tensor({0.0, 1.0, -1.0, 0.5, 2.0, -0.25, 3.0, -2.5});
  return numbers.index({at::arange(like.numel()).remainder(numbers.numel())})
      .to(like.scalar_type())
      .view(like.sizes());
}

/// The limit of a difference: that of cudaTolerance() for the largest finite number expected, or 1.
bool areNearTheLargest(const at::Tensor &actual, const at::Tensor &expected) {
  const at::Tensor wide = expected.to(at::kDouble), finite = wide.masked_select(wide.isfinite());
  const double largest = finite.numel() == 0 ? 1 : std::max(1.0, finite.abs().max().item<double>());
  const double tolerance = cudaTolerance(expected.scalar_type());
  return at::allclose(actual.to(at::kDouble), wide, tolerance, tolerance * largest,
                      /*equal_nan=*/true);
}

/// Compares the results of a graph @g of inputs with LibTorch's.
void compareForCuda(const std::string &text, int64_t bound) {
  LoweredGraph graph(text, bound, DeviceKind::Cuda, ExecutorKind::Reference);
  ASSERT_TRUE(graph.isOk());
  std::vector<at::Tensor> inputs = graph.randomInputs("g");
  for (const bool isSpecial : {false, true}) {
    if (isSpecial)
      for (at::Tensor &input : inputs)
        if (input.is_floating_point())
          input = specialNumbers(input);
    std::vector<at::Tensor> expected;
    try {
      expected = runWithLibTorch(text, inputs);
    } catch (const std::exception &) {
      continue;
    }
    const auto outputs = graph.run("g", inputs);
    ASSERT_TRUE(outputs) << outputs.status().message();
    for (size_t k = 0; k < expected.size(); ++k) {
      ASSERT_EQ((*outputs)[k].sizes(), expected[k].sizes());
      EXPECT_TRUE(areNearTheLargest((*outputs)[k], expected[k]))
          << (isSpecial ? "special numbers, " : "") << "result " << k << "\n"
          << (*outputs)[k] << "\nexpected\n"
          << expected[k] << (inputs.empty() ? "" : "\nof\n")
          << (inputs.empty() ? at::Tensor() : inputs[0]);
    }
  }
}

class ValueRules : public ::testing::TestWithParam<Grid> {};

TEST_P(ValueRules, AgreeWithLibTorchForCuda) {
  c10::InferenceMode guard;
  const Grid &grid = GetParam();
  forEachChoice(grid, [&](const std::vector<std::string> &texts) {
    const std::optional<std::string> text = acceptedCall(grid, texts);
    if (!text)
      return false;
    SCOPED_TRACE(grid.where + ": " + *text);
    compareForCuda(*text, grid.fill + 1);
    return !testing::Test::HasFatalFailure();
  });
}

INSTANTIATE_TEST_SUITE_P(Ops, ValueRules, ::testing::ValuesIn(gridsOfValues()),
                         [](const auto &info) { return info.param.name; });

/// LibTorch has no op named cgc.*: lowering_test compares these with their parts.
bool isCompared(ir::OpKind op) {
  return ir::opDef(op).infer && !ir::opName(op).starts_with("cgc.");
}

TEST(ShapeRules, EveryRuleIsCompared) {
  std::set<ir::OpKind> covered;
  for (const Grid &grid : opTests().grids)
    covered.insert(grid.op);
  for (unsigned i = 0; i < ir::kNumOps; ++i)
    if (auto op = static_cast<ir::OpKind>(i); isCompared(op)) {
      EXPECT_TRUE(covered.count(op))
          << ir::opName(op).str() << " has no line '; shapes: aten::op(...)' in its file test";
    }
}

/// Returns the kinds of tensors among the values of an argument.
unsigned kindsOf(const Arg &arg) {
  unsigned kinds = 0;
  arg.forEachValue([&](const ir::Value *value) {
    const TensorType &type = value->tensor();
    if (type.numElements() == 0)
      kinds |= kEmpty;
    else if (!type.isContiguous())
      kinds |= kStrided;
    if (llvm::is_contained(type.sizes, 1))
      kinds |= kSizeOne;
  });
  return kinds;
}

/// Returns the kinds that no call of `op` accepts in the argument, by the lines '; never'.
unsigned impossibleKinds(ir::OpKind op, const std::string &arg) {
  auto found = opTests().impossible.find(op);
  return found == opTests().impossible.end() || !found->second.contains(arg)
             ? 0
             : found->second.at(arg);
}

TEST(ShapeRules, EveryLineOfTheFileTestsCanBeRead) {
  EXPECT_THAT(opTests().errors, testing::IsEmpty());
}

TEST(ShapeRules, EveryRuleSeesEmptySizeOneAndStridedTensors) {
  // For each op, the kinds that each of its arguments has in some call accepted by its rule.
  std::map<ir::OpKind, std::vector<unsigned>> seen;
  for (const Grid &grid : opTests().grids) {
    std::vector<unsigned> &kinds = seen[grid.op];
    kinds.resize(grid.args.size());
    for (size_t number = 0; number < numCalls(grid); ++number) {
      const GridCall call(grid, choose(grid, number));
      bool isNew = false;
      for (size_t i = 0; i < kinds.size(); ++i)
        isNew |= (kindsOf(call.args()[i]) & ~kinds[i]) != 0;
      if (!isNew || !ir::inferResults(grid.op, call.args(), DeviceKind::Cpu).isOk())
        continue;
      for (size_t i = 0; i < kinds.size(); ++i)
        kinds[i] |= kindsOf(call.args()[i]);
    }
  }
  for (const auto &[op, kinds] : seen)
    for (size_t i = 0; i < kinds.size(); ++i) {
      const ir::SchemaArg &arg = ir::opSchema(op).args[i];
      if (arg.kind != ir::ArgKind::Tensor && arg.kind != ir::ArgKind::TensorOrNumber)
        continue;
      const unsigned missing = kAllKinds & ~kinds[i] & ~impossibleKinds(op, arg.name);
      EXPECT_EQ(missing, 0u) << ir::opName(op).str() << ": no accepted call has as '" << arg.name
                             << "'" << (missing & kEmpty ? " an empty tensor" : "")
                             << (missing & kSizeOne ? " a dimension of size 1" : "")
                             << (missing & kStrided ? " a tensor that is not contiguous" : "");
    }
}

} // namespace
} // namespace cgc::test

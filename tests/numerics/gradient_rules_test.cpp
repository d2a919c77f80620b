// gradient_rules: compares the gradients of ops with those of LibTorch's autograd over the grids of
// arguments of their file tests, for the CPU in f64 and for cuda in f32.
#include "ir/gradient.h"
#include "ir/op_def.h"
#include "tests/numerics/differentiated_graph.h"
#include "tests/numerics/grid_call.h"
#include "tests/numerics/lowered_graph.h"

#include "llvm/ADT/STLExtras.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

namespace cgc::test {
namespace {

/// The grids of one op.
struct OpGrids {
  ir::OpKind op;
  std::vector<Grid> grids;
};

void PrintTo(const OpGrids &grids, std::ostream *os) {
  *os << ir::opName(grids.op).str();
}

/// The ops that can be trained through, by a rule of their own or by the ops that they consist of.
std::vector<OpGrids> opsWithGradients() {
  std::vector<OpGrids> ops;
  for (const Grid &grid : gridsOfValues()) {
    const ir::OpDef &def = ir::opDef(grid.op);
    if (!def.gradient && !def.decompose)
      continue;
    if (ops.empty() || ops.back().op != grid.op)
      ops.push_back({grid.op, {}});
    ops.back().grids.push_back(grid);
  }
  return ops;
}

/// Whether the op is defined for numbers between 0 and 1 only.
bool isOfProbabilities(ir::OpKind op) {
  return llvm::is_contained({ir::OpKind::KlDiv, ir::OpKind::BinaryCrossEntropy, ir::OpKind::Log,
                             ir::OpKind::Sqrt, ir::OpKind::Rsqrt, ir::OpKind::Acos,
                             ir::OpKind::Asin, ir::OpKind::Atanh, ir::OpKind::Erfinv},
                            op);
}

/// Whether LibTorch's gradients of a call are those of its results.
bool isRightInLibTorch(ir::OpKind op, llvm::StringRef text, const DifferentiatedGraph &graph) {
  switch (op) {
  case ir::OpKind::MseLoss:
  case ir::OpKind::HuberLoss:
  case ir::OpKind::SmoothL1Loss: // It divides by the elements of one operand, not of the mean.
    return graph.input(0).sizes() == graph.input(1).sizes();
  case ir::OpKind::CosineSimilarity: // It takes no eps into account.
    return !text.contains("eps=1");
  case ir::OpKind::UpsampleNearest3d: // Its backward pass takes other scales.
    return !text.contains("scales_");
  default: // It negates bytes to bytes.
    return llvm::none_of(graph.inputs(),
                         [](const at::Tensor &input) { return input.scalar_type() == at::kByte; });
  }
}

/// Whether LibTorch's CPU op can stand in for its CUDA op: its group norm has the statistics of
/// 16-bit numbers in 16 bits.
bool runsByReference(ir::OpKind op, llvm::StringRef text) {
  return !text.contains("f16") || op != ir::OpKind::GroupNorm;
}

/// The largest difference, relative to the largest expected number, of two sides that compute in
/// the narrowest floating dtype of a graph.
double toleranceOf(ir::OpKind op, llvm::StringRef text, DeviceKind target) {
  for (const auto &[name, type] : {std::pair("bf16", at::kBFloat16), {"f16", at::kHalf}})
    if (text.contains(name))
      return 2 * cudaTolerance(type);
  if (target == DeviceKind::Cuda)
    return cudaTolerance(at::kFloat);
  // LibTorch multiplies integers with numbers in f32, and has 1 / 6 in f32.
  constexpr const char *kSingle[] = {": i64", ": i32", ": i16", ": i8", ": bool", "f32"};
  const bool isSingle =
      op == ir::OpKind::Hardsigmoid || op == ir::OpKind::Hardswish ||
      std::ranges::any_of(kSingle, [&](const char *dtype) { return text.contains(dtype); });
  return isSingle ? 1e-6 : 1e-12;
}

void expectGradients(const DifferentiatedGraph &tested, const Variant &variant, DeviceKind target,
                     double tolerance, ir::OpKind op) {
  std::map<size_t, at::Tensor> expected;
  try {
    expected = tested.expected(variant);
  } catch (const std::exception &) {
    return; // LibTorch cannot differentiate it.
  }
  const auto actual = tested.gradients(
      variant, target, target == DeviceKind::Cpu ? ExecutorKind::Stream : ExecutorKind::Reference);
  if (!actual) {
    EXPECT_EQ(actual.status().code(), Code::Unsupported);
    const llvm::StringRef message = actual.status().message();
    if (message.contains("the loss depends on no parameter")) {
      for (const size_t i : variant.trained)
        EXPECT_FALSE(at::any(expected.at(i)).item<bool>()) << expected.at(i);
      return;
    }
    EXPECT_TRUE(message.contains("cgc cannot train through " + ir::opName(op).str()))
        << message.str();
    return;
  }
  for (const size_t i : variant.trained) {
    ASSERT_TRUE(actual->contains(i));
    const at::Tensor found = actual->at(i).to(at::kDouble), wanted = expected.at(i).to(at::kDouble);
    ASSERT_EQ(found.sizes(), wanted.sizes());
    const at::Tensor finite = wanted.masked_select(wanted.isfinite());
    const double largest =
        finite.numel() == 0 ? 1 : std::max(1.0, finite.abs().max().item<double>());
    EXPECT_TRUE(at::allclose(found, wanted, tolerance, tolerance * largest, /*equal_nan=*/true))
        << "input " << i << " of " << variant.trained.size() << " trained\n"
        << found << "\nexpected\n"
        << wanted << "\nof\n"
        << tested.input(i);
  }
}

/// The calls of a test and the gradients that it compared.
struct Counts {
  int calls = 0, gradients = 0;
};

/// Compares the gradients of one call with LibTorch's: of all its floating operands together, and
/// of each. Returns false if there are none to compare.
bool compareGradients(const Grid &grid, std::vector<std::string> texts, DeviceKind target,
                      Counts &counts) {
  if (target == DeviceKind::Cpu)
    for (std::string &text : texts)
      for (size_t at = 0; (at = text.find("f32", at)) != std::string::npos;)
        text.replace(at, 3, "f64");
  const std::optional<std::string> text = acceptedCall(grid, texts);
  if (!text)
    return false;
  SCOPED_TRACE(grid.where + (target == DeviceKind::Cpu ? ", cpu: " : ", cuda: ") + *text);
  GradientCase c{.name = grid.name, .graph = *text, .reference = *text, .bound = grid.fill + 1};
  if (isOfProbabilities(grid.op))
    c.range = {0.1, 0.9};
  const DifferentiatedGraph tested(c);
  if (!tested.isOk() || !tested.hasLoss() || tested.floating().empty() ||
      !isRightInLibTorch(grid.op, *text, tested) ||
      (target == DeviceKind::Cuda && !runsByReference(grid.op, *text)))
    return false;
  const std::set<size_t> all(tested.floating().begin(), tested.floating().end());
  std::vector<Variant> variants{{.trained = all}};
  if (all.size() > 1)
    for (const size_t i : all)
      variants.push_back({.trained = {i}});
  for (const Variant &variant : variants)
    expectGradients(tested, variant, target, toleranceOf(grid.op, *text, target), grid.op);
  ++counts.calls;
  counts.gradients += static_cast<int>(variants.size());
  return true;
}

class GradientRules : public testing::TestWithParam<OpGrids> {};

TEST_P(GradientRules, AgreeWithLibTorch) {
  Counts counts;
  for (const Grid &grid : GetParam().grids)
    for (const DeviceKind target : {DeviceKind::Cpu, DeviceKind::Cuda})
      forEachChoice(grid, [&](const std::vector<std::string> &texts) {
        return compareGradients(grid, texts, target, counts);
      });
  RecordProperty("calls", counts.calls);
  RecordProperty("gradients", counts.gradients);
}

INSTANTIATE_TEST_SUITE_P(Ops, GradientRules, testing::ValuesIn(opsWithGradients()),
                         [](const auto &info) {
                           std::string name = ir::opName(info.param.op).str();
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

} // namespace
} // namespace cgc::test

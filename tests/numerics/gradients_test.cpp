// Gradients: the rules of OpDef::gradient, by the `; gradient` lines of the file tests. The passes
// differentiate a random projection of the results, the runtime runs it, and the gradients are
// compared with those of LibTorch's autograd and with finite differences.
#include "ir/gradient.h"
#include "ir/op_def.h"
#include "tests/numerics/differentiated_graph.h"
#include "tests/numerics/op_tests.h"

#include <ATen/ops/allclose.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace cgc::test {
namespace {

void expectNear(const at::Tensor &actual, const at::Tensor &expected, double relative,
                double absolute) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  EXPECT_TRUE(at::allclose(actual.to(at::kDouble), expected.to(at::kDouble), relative, absolute,
                           /*equal_nan=*/true))
      << actual << "\nexpected\n"
      << expected;
}

class Gradients : public testing::TestWithParam<GradientCase> {};

TEST_P(Gradients, EqualLibTorchs) {
  const DifferentiatedGraph tested(GetParam());
  ASSERT_TRUE(tested.isOk());
  ASSERT_FALSE(tested.floating().empty());
  std::vector<Variant> variants;
  for (size_t i : tested.floating())
    variants.push_back({.trained = {i}});
  const std::set<size_t> all(tested.floating().begin(), tested.floating().end());
  variants.push_back({.trained = all});
  variants.push_back({.trained = all, .strided = true});
  for (const Variant &variant : variants) {
    const auto actual = tested.gradients(variant);
    ASSERT_TRUE(actual) << actual.status().message();
    const auto expected = tested.expected(variant);
    for (size_t i : variant.trained) {
      SCOPED_TRACE("input " + std::to_string(i) + " of " + std::to_string(variant.trained.size()) +
                   (variant.strided ? " trained and transposed" : " trained"));
      ASSERT_TRUE(actual->contains(i));
      expectNear(actual->at(i), expected.at(i), 1e-12, 1e-13);
    }
  }
}

TEST_P(Gradients, EqualFiniteDifferences) {
  if (GetParam().hasKink)
    return;
  const DifferentiatedGraph tested(GetParam());
  ASSERT_TRUE(tested.isOk());
  const std::set<size_t> all(tested.floating().begin(), tested.floating().end());
  const auto actual = tested.gradients({.trained = all});
  ASSERT_TRUE(actual) << actual.status().message();
  for (size_t i : tested.floating()) {
    if (tested.input(i).scalar_type() != at::kDouble)
      continue; // The step would vanish.
    SCOPED_TRACE("input " + std::to_string(i));
    ASSERT_TRUE(actual->contains(i));
    expectNear(actual->at(i), tested.differences(i), 1e-3, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Gradients, testing::ValuesIn(opTests().gradients),
                         [](const auto &info) { return info.param.name; });

TEST(GradientCases, CoverEveryOpWithAGradient) {
  std::string missing;
  for (unsigned i = 0; i < ir::kNumOps; ++i) {
    const auto op = static_cast<ir::OpKind>(i);
    const ir::GradientFn rule = ir::opDef(op).gradient;
    if (!rule || rule == ir::gradient::none ||
        op == ir::OpKind::CgcDropout || // LibTorch draws other numbers.
        // The file test differentiate_collectives has their gradients, and several ranks train.
        op == ir::OpKind::CgcAllReduce || op == ir::OpKind::CgcAllGather ||
        op == ir::OpKind::CgcReduceScatter || op == ir::OpKind::CgcBroadcast)
      continue;
    const std::string call = " " + ir::opName(op).str() + "(";
    if (std::ranges::none_of(opTests().gradients, [&](const GradientCase &c) {
          return c.graph.find(call) != std::string::npos;
        }))
      missing += " " + ir::opName(op).str(); // Its file test has no '; gradient'.
  }
  EXPECT_EQ(missing, "");
}

} // namespace
} // namespace cgc::test

// Precision: the bytes of converted parameters compared with llvm::APFloat, and refusals.
#include "passes/canonicalize/precision.h"

#include "passes/pipeline.h"
#include "tests/unit/passes/passes_test_util.h"

#include "llvm/ADT/APFloat.h"
#include "gmock/gmock.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace cgc::passes {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const llvm::fltSemantics &semanticsOf(DType dtype) {
  return dtype == DType::F16    ? llvm::APFloat::IEEEhalf()
         : dtype == DType::BF16 ? llvm::APFloat::BFloat()
                                : llvm::APFloat::IEEEsingle();
}

/// Converts `bits`, a number of `from`, to the bits of `to`.
uint64_t rounded(uint64_t bits, DType from, DType to) {
  unsigned width = 8 * static_cast<unsigned>(dtypeSize(from));
  llvm::APFloat number(semanticsOf(from), llvm::APInt(width, bits));
  bool ignored;
  number.convert(semanticsOf(to), llvm::APFloat::rmNearestTiesToEven, &ignored);
  return number.bitcastToAPInt().getZExtValue();
}

template <class T> std::vector<std::byte> bytesOf(const std::vector<T> &values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Returns a module whose graph returns its parameter %w of `count` numbers of `from`.
std::unique_ptr<ir::Module> returnsParameter(DType from, size_t count,
                                             const std::vector<std::byte> &bytes) {
  std::string type = std::string(dtypeName(from)) + "[" + std::to_string(count) + "]";
  auto module = parse("module @Root class=\"Root\" {\n  param @w : " + type +
                      "\n  graph @g() {\n    %w = get_attr @w : " + type +
                      " loc(\"model.py\":3 \"visual\")\n    output %w\n  }\n}\n");
  module->setParameterData(
      "w", ir::TensorData::copyOf(ir::TensorType::dense(from, {int64_t(count)}), bytes));
  return module;
}

/// Returns the parameter read by the output of the module's graph.
const ir::Parameter &outputParameter(const ir::Module &module) {
  const ir::Value *output = module.findGraph("g")->outputs().front().value();
  return *module.findParameter(output->node()->target());
}

template <class From, class To>
void expectRounded(const std::vector<From> &values, DType from, DType to) {
  auto module = returnsParameter(from, values.size(), bytesOf(values));
  Status status = runPasses(*module, "precision{to=" + std::string(dtypeName(to)) + "}");
  ASSERT_TRUE(status.isOk()) << status.message();
  const ir::Parameter &parameter = outputParameter(*module);
  ASSERT_EQ(parameter.type.dtype, to);
  std::vector<To> actual(values.size());
  std::memcpy(actual.data(), parameter.data->bytes().data(), parameter.data->bytes().size());
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(actual[i], rounded(values[i], from, to)) << "of the bits " << values[i];
}

/// Returns floats of every exponent of `to`, and the midpoints between two of its numbers.
std::vector<uint32_t> floats(double below) {
  std::vector<uint32_t> bits = {0, 0x80000000, 0x7f800000, 0xff800000};
  std::mt19937 random(0);
  while (bits.size() < 300'000) {
    uint32_t word = random();
    for (uint32_t candidate : {word, word & 0xfffff000u, word & 0xffff8000u})
      if (std::abs(std::bit_cast<float>(candidate)) < below)
        bits.push_back(candidate);
  }
  // Around the limits of f16's subnormal and normal numbers.
  for (float edge : {0x1p-14f, 0x1p-24f, 0x1p-25f, 0x1.8p-24f, 65504.0f, 65519.0f})
    for (int step = -2; step <= 2; ++step)
      bits.push_back(std::bit_cast<uint32_t>(edge) + static_cast<uint32_t>(step));
  return bits;
}

TEST(Precision, RoundsToNearestEven) {
  expectRounded<uint32_t, uint16_t>(floats(65519), DType::F32, DType::F16);
  expectRounded<uint32_t, uint16_t>(floats(3.3e38), DType::F32, DType::BF16);
}

TEST(Precision, ConvertsBetweenSixteenBits) {
  std::vector<uint16_t> all;
  for (uint32_t bits = 0; bits <= 0xffff; ++bits)
    if ((bits & 0x7c00) != 0x7c00) // Excludes NaN, whose payload may differ.
      all.push_back(static_cast<uint16_t>(bits));
  expectRounded<uint16_t, uint32_t>(all, DType::F16, DType::F32);
  expectRounded<uint16_t, uint16_t>(all, DType::F16, DType::BF16);
}

TEST(Precision, KeepsNaNsAndInfinitiesAndTheLargestNumber) {
  constexpr float kLargest = std::numeric_limits<float>::max(), kInfinity = INFINITY;
  auto module = returnsParameter(DType::F32, 5,
                                 bytesOf<float>({-kLargest, kLargest, -kInfinity, kInfinity, NAN}));
  ASSERT_TRUE(runPasses(*module, "precision{to=f16}").isOk());
  std::vector<uint16_t> actual(5);
  std::memcpy(actual.data(), outputParameter(*module).data->bytes().data(), 10);
  EXPECT_EQ(actual, (std::vector<uint16_t>{0xfbff, 0x7bff, 0xfc00, 0x7c00, 0x7e00}));
}

TEST(Precision, RefusesAParameterThatOverflows) {
  auto module = returnsParameter(DType::F32, 2, bytesOf<float>({1.0f, 65520.0f}));
  ir::Diagnostics diagnostics;
  Status status = runPasses(*module, "precision{to=f16}", {.diagnostics = &diagnostics});
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("model.py:3"), HasSubstr("'w' holds 6.552"),
                                      HasSubstr("past the largest number of f16")));
  EXPECT_TRUE(diagnostics.hasErrors());
  module = returnsParameter(DType::F32, 2, bytesOf<float>({1.0f, 65519.0f}));
  EXPECT_TRUE(runPasses(*module, "precision{to=f16}").isOk());
}

TEST(Precision, IsInTheDefaultPipelineIfAskedFor) {
  EXPECT_THAT(toString(defaultPasses()), ::testing::Not(HasSubstr("precision")));
  EXPECT_THAT(toString(defaultPasses({.precision = DType::BF16})),
              HasSubstr("canonicalize{casts=keep},precision{to=bf16},random-numbers,fold"));
  EXPECT_THAT(toString(defaultPasses({.precision = DType::F32})),
              HasSubstr("canonicalize,precision{to=f32},random-numbers,fold"));
}

TEST(Precision, ToTheModelsOwnChangesNothing) {
  auto module = returnsParameter(DType::F32, 1, bytesOf<float>({1e9f}));
  const std::string before = ir::toString(*module);
  ASSERT_TRUE(runPasses(*module, "precision{to=f32}").isOk());
  EXPECT_EQ(ir::toString(*module), before);
}

TEST(Precision, BucketsShareTheConstants) {
  auto module = returnsParameter(DType::F32, 1, bytesOf<float>({1.0f}));
  auto again = module->findGraph("g")->clone("again");
  module->addGraph(std::move(again));
  ASSERT_TRUE(runPasses(*module, "precision{to=bf16}").isOk());
  EXPECT_EQ(module->parameters().size(), 2u);
}

} // namespace
} // namespace cgc::passes

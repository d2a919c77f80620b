// The layer_norm kernels against double precision at odd shapes, with guard bands around the
// result.
#include "tests/conformance/cuda_fixture.h"
#include "tests/conformance/element_bytes.h"

#include <cmath>

namespace cgc::test {
namespace {

constexpr uint64_t kGuard = 512;
constexpr uint8_t kGuardByte = 0xab;

struct Case {
  DType dtype;
  int64_t rows, columns;
  bool weight, bias;
};

/// Fills the arena with guard bytes, writes y into its middle, and gives all of it as the output.
SamplePlan guardedPlan(const Case &c, const std::vector<std::byte> &weight,
                       const std::vector<std::byte> &bias) {
  SamplePlan sample;
  PlanData &plan = sample.plan;
  plan.target = DeviceKind::Cuda;
  plan.weights = {{.name = "weight", .dtype = c.dtype, .sizes = {c.columns}},
                  {.name = "bias", .dtype = c.dtype, .sizes = {c.columns}}};
  sample.weights = {weight, bias};
  const uint64_t bytes = c.rows * c.columns * dtypeSize(c.dtype), total = bytes + 2 * kGuard;
  Bucket bucket;
  bucket.inputs = {{"x", c.dtype, {c.rows, c.columns}, 0}};
  bucket.outputs = {{"arena", DType::U8, {int64_t(total)}, 0}};
  bucket.arenaBytes = total;
  bucket.tensors = {dense(BufferKind::Input, 0, 0, c.dtype, {c.rows, c.columns}),
                    dense(BufferKind::Arena, 0, kGuard, c.dtype, {c.rows, c.columns}),
                    dense(BufferKind::Arena, 0, 0, DType::U8, {int64_t(total)}),
                    dense(BufferKind::Output, 0, 0, DType::U8, {int64_t(total)}),
                    dense(BufferKind::Weight, 0, 0, c.dtype, {c.columns}),
                    dense(BufferKind::Weight, 1, 0, c.dtype, {c.columns})};
  bucket.records = {{Memset{id(2), kGuardByte}},
                    {layerNorm(c.dtype, c.rows, c.columns, id(0), c.weight ? id(4) : kNoTensor,
                               c.bias ? id(5) : kNoTensor, id(1))},
                    {Memcpy{id(2), id(3)}}};
  plan.entries = {{"main", {bucket}}};
  return sample;
}

class LayerNorm : public CudaTest, public testing::WithParamInterface<ExecutorKind> {
protected:
  void check(const Case &c) {
    SCOPED_TRACE(std::string(dtypeName(c.dtype)) + " " + std::to_string(c.rows) + "x" +
                 std::to_string(c.columns) + (c.weight ? " weight" : "") + (c.bias ? " bias" : ""));
    const auto x = encode(c.dtype, randomFloats(c.rows * c.columns, 1));
    const auto weight = encode(c.dtype, randomFloats(c.columns, 2));
    const auto bias = encode(c.dtype, randomFloats(c.columns, 3));
    load(guardedPlan(c, weight, bias));
    Context context = this->context(GetParam());
    std::vector<std::byte> input = x, arena(x.size() + 2 * kGuard);
    const std::vector<int64_t> sizes = {c.rows, c.columns}, arenaSizes = {int64_t(arena.size())};
    const TensorView in{input.data(), c.dtype, DeviceKind::Cpu, sizes, {}};
    const TensorView out{arena.data(), DType::U8, DeviceKind::Cpu, arenaSizes, {}};
    const Status status = context.run("main", {&in, 1}, {&out, 1});
    ASSERT_TRUE(status.isOk()) << status.message();

    for (uint64_t i = 0; i < kGuard; ++i) {
      ASSERT_EQ(arena[i], std::byte{kGuardByte}) << "before y, byte " << i;
      ASSERT_EQ(arena[arena.size() - 1 - i], std::byte{kGuardByte}) << "after y, byte -" << i;
    }
    const std::vector<double> xs = decodeAll(c.dtype, x), ws = decodeAll(c.dtype, weight),
                              bs = decodeAll(c.dtype, bias);
    // f32 arithmetic over a row, then one rounding to the result's type.
    const double rounding = c.dtype == DType::F32   ? 0x1p-23
                            : c.dtype == DType::F16 ? 0x1p-11
                                                    : 0x1p-8;
    for (int64_t r = 0; r < c.rows; ++r) {
      double mean = 0, variance = 0;
      for (int64_t k = 0; k < c.columns; ++k)
        mean += xs[r * c.columns + k] / c.columns;
      for (int64_t k = 0; k < c.columns; ++k)
        variance += std::pow(xs[r * c.columns + k] - mean, 2) / c.columns;
      // What f32 loses where a row's elements are nearly equal: the subtraction of the mean
      // cancels.
      double largest = 0;
      for (int64_t k = 0; k < c.columns; ++k)
        largest = std::max(largest, std::abs(xs[r * c.columns + k]));
      const double cancelled = 0x1p-22 * largest / std::sqrt(variance + 1e-5);
      for (int64_t k = 0; k < c.columns; ++k) {
        const double expected =
            (xs[r * c.columns + k] - mean) / std::sqrt(variance + 1e-5) * (c.weight ? ws[k] : 1) +
            (c.bias ? bs[k] : 0);
        const double got =
            decode(c.dtype, arena.data() + kGuard + (r * c.columns + k) * dtypeSize(c.dtype));
        ASSERT_NEAR(got, expected,
                    rounding * std::abs(expected) + 2e-5 +
                        cancelled * (1 + std::abs(expected)) * (c.weight ? 1 + std::abs(ws[k]) : 1))
            << "row " << r << " column " << k;
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Both, LayerNorm,
                         testing::Values(ExecutorKind::Stream, ExecutorKind::Graph),
                         [](const auto &info) {
                           return info.param == ExecutorKind::Stream ? "Stream" : "Graph";
                         });

TEST_P(LayerNorm, OddShapes) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
    for (const auto &[rows, columns] : {std::pair<int64_t, int64_t>{1, 1},
                                        {3, 2},
                                        {1, 31},
                                        {2, 33},
                                        {5, 255},
                                        {7, 257},
                                        {50, 768},
                                        {257, 1024},
                                        {3, 2047},
                                        {3, 2048},
                                        {3, 2049},
                                        {2, 5003},
                                        {70000, 3}})
      check({dtype, rows, columns, true, true});
}

TEST_P(LayerNorm, WeightAndBiasAreOptional) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16})
    for (const bool weight : {false, true})
      check({dtype, 4, 771, weight, !weight}), check({dtype, 4, 2500, false, false});
}

} // namespace
} // namespace cgc::test

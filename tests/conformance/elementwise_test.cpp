// elementwise and copy against double precision: every op and conversion, broadcasting, strides.
#include "runtime/kernels/elementwise.h"
#include "tests/conformance/kernel_fixture.h"

#include <functional>

namespace cgc::test {
namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double reference(ElementwiseOp op, double x, double y) {
  switch (op) {
  case ElementwiseOp::Abs:
    return std::abs(x);
  case ElementwiseOp::Neg:
    return -x;
  case ElementwiseOp::Exp:
    return std::exp(x);
  case ElementwiseOp::Sqrt:
    return std::sqrt(x);
  case ElementwiseOp::Rsqrt:
    return 1 / std::sqrt(x);
  case ElementwiseOp::Sin:
    return std::sin(x);
  case ElementwiseOp::Cos:
    return std::cos(x);
  case ElementwiseOp::Erf:
    return std::erf(x);
  case ElementwiseOp::Sigmoid:
    return sigmoid(x);
  case ElementwiseOp::Tanh:
    return std::tanh(x);
  case ElementwiseOp::Relu:
    return x > 0 ? x : std::isnan(x) ? x : 0;
  case ElementwiseOp::Gelu:
    return x / 2 * std::erfc(-x / std::sqrt(2.0));
  case ElementwiseOp::GeluTanh:
    return x * sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  case ElementwiseOp::QuickGelu:
    return x * sigmoid(1.702 * x);
  case ElementwiseOp::Silu:
    return x * sigmoid(x);
  case ElementwiseOp::Add:
    return x + y;
  case ElementwiseOp::Sub:
    return x - y;
  case ElementwiseOp::ReverseSub:
    return y - x;
  case ElementwiseOp::Mul:
    return x * y;
  case ElementwiseOp::Div:
    return x / y;
  case ElementwiseOp::ReverseDiv:
    return y / x;
  case ElementwiseOp::Pow:
    return std::pow(x, y);
  case ElementwiseOp::Maximum:
    return std::isnan(x) || std::isnan(y) ? NAN : std::max(x, y);
  case ElementwiseOp::Minimum:
    return std::isnan(x) || std::isnan(y) ? NAN : std::min(x, y);
  }
  return NAN;
}

class Elementwise : public KernelTest {
protected:
  static uint64_t blocks(const HostTensor &y) { return elementwiseBlocks(y.elements(), 4); }

  HostTensor compute(ElementwiseOp op, const HostTensor &x, std::optional<HostTensor> z,
                     const HostTensor &y, double number = 0) {
    return launch({.kernel = named("elementwise", y.dtype),
                   .blocks = blocks(y),
                   .threads = kElementwiseThreads,
                   .reads = {x, std::move(z)},
                   .writes = {y},
                   .ints = {int64_t(op)},
                   .floats = {number}})[0];
  }
  HostTensor copy(const HostTensor &x, const HostTensor &y) {
    return launch({.kernel = "copy",
                   .blocks = blocks(y),
                   .threads = kElementwiseThreads,
                   .reads = {x},
                   .writes = {y}})[0];
  }
  void checkSum(const HostTensor &x, const HostTensor &z, const HostTensor &y) {
    const HostTensor result = compute(ElementwiseOp::Add, x, z, y);
    expectNear(result, [&](uint64_t i) { return x.at(i, y.sizes) + z.at(i, y.sizes); });
  }
};
CGC_ON_BOTH_EXECUTORS(Elementwise);

TEST_P(Elementwise, EveryOp) {
  for (const DType dtype : kFloats)
    for (int i = 0; i < kNumElementwiseOps; ++i) {
      const auto op = ElementwiseOp(i);
      SCOPED_TRACE("op " + std::to_string(i));
      const HostTensor shape = emptyTensor(dtype, {7, 77});
      HostTensor x = withRandom(shape, 1), z = withRandom(shape, 2);
      const bool needsPositive =
          op == ElementwiseOp::Sqrt || op == ElementwiseOp::Rsqrt || op == ElementwiseOp::Pow;
      if (needsPositive) {
        std::vector<double> values(x.elements());
        for (uint64_t k = 0; k < values.size(); ++k)
          values[k] = std::abs(x.at(k)) + 0.125;
        x = withValues(x, values);
      }
      // Besides rounding: what f32 arithmetic and the fast functions lose, and where results
      // cancel.
      const double ofValue = dtype == DType::F32 ? 8e-6 : 4e-6;
      const double absolute = dtype == DType::F32 ? 1e-6 : 1e-7;
      const HostTensor y = compute(op, x, isBinary(op) ? std::optional(z) : std::nullopt, shape);
      expectNear(y, [&](uint64_t k) { return reference(op, x.at(k), z.at(k)); }, ofValue, absolute);
      if (!isBinary(op))
        continue;
      const HostTensor ofNumber = compute(op, x, std::nullopt, shape, 1.7);
      expectNear(
          ofNumber, [&](uint64_t k) { return reference(op, x.at(k), 1.7f); }, ofValue, absolute);
    }
}

TEST_P(Elementwise, ActivationsOverTheirWholeRange) {
  for (const DType dtype : kFloats) {
    std::vector<double> values;
    for (double x = -40; x <= 40; x += 0.0173)
      values.push_back(x);
    values.insert(values.end(), {0.0, -0.0, 1e-4, -1e-4, 60000.0, -60000.0, INFINITY, NAN});
    const HostTensor shape = emptyTensor(dtype, {int64_t(values.size())});
    const HostTensor x = withValues(shape, values);
    for (const ElementwiseOp op :
         {ElementwiseOp::Gelu, ElementwiseOp::GeluTanh, ElementwiseOp::QuickGelu,
          ElementwiseOp::Silu, ElementwiseOp::Relu, ElementwiseOp::Tanh, ElementwiseOp::Sigmoid}) {
      SCOPED_TRACE("op " + std::to_string(int(op)));
      expectNear(
          compute(op, x, std::nullopt, shape),
          [&](uint64_t i) { return reference(op, x.at(i), 0); }, dtype == DType::F32 ? 1e-5 : 4e-6,
          1e-6);
    }
  }
}

TEST_P(Elementwise, DenseOfAnyLength) {
  for (const DType dtype : kFloats)
    for (const std::vector<int64_t> &sizes :
         {std::vector<int64_t>{}, {1}, {3}, {8}, {257}, {77, 768}, {3, 5, 7, 2}, {600000}}) {
      const HostTensor shape = emptyTensor(dtype, sizes);
      checkSum(withRandom(shape, 1), withRandom(shape, 2), shape);
    }
}

TEST_P(Elementwise, Broadcasts) {
  struct Shapes {
    std::vector<int64_t> x, z, y;
  };
  for (const DType dtype : kFloats)
    for (const Shapes &s : std::vector<Shapes>{{{77, 768}, {768}, {77, 768}},        // a bias
                                               {{5, 77, 64}, {77, 64}, {5, 77, 64}}, // positions
                                               {{77, 768}, {77, 1}, {77, 768}},
                                               {{1, 768}, {77, 768}, {77, 768}},
                                               {{3, 1, 5}, {4, 1}, {3, 4, 5}},
                                               {{2, 3}, {}, {2, 3}},
                                               {{1}, {16, 16}, {16, 16}},
                                               {{8, 1}, {1, 24}, {8, 24}}})
      checkSum(withRandom(emptyTensor(dtype, s.x), 1), withRandom(emptyTensor(dtype, s.z), 2),
               emptyTensor(dtype, s.y));
}

TEST_P(Elementwise, StridesAndOffsets) {
  for (const DType dtype : kFloats) {
    // A transpose; a column range of a wider matrix, aligned and not; every second element.
    const HostTensor flat = emptyTensor(dtype, {24, 40});
    const HostTensor z = withRandom(flat, 2);
    for (const HostTensor &x :
         {emptyTensor(dtype, {24, 40}, {1, 24}), emptyTensor(dtype, {24, 40}, {64, 1}, 8),
          emptyTensor(dtype, {24, 40}, {64, 1}, 3), emptyTensor(dtype, {24, 40}, {65, 1}),
          emptyTensor(dtype, {24, 40}, {80, 2}), emptyTensor(dtype, {24, 40}, {0, 1}, 1)}) {
      checkSum(withRandom(x, 1), z, flat);
      checkSum(z, withRandom(x, 1), flat);
    }
    // Into a part of a result.
    for (const HostTensor &y :
         {emptyTensor(dtype, {24, 40}, {64, 1}, 16), emptyTensor(dtype, {24, 40}, {64, 1}, 5),
          emptyTensor(dtype, {24, 40}, {1, 24}), emptyTensor(dtype, {24, 40}, {41, 1})})
      checkSum(withRandom(flat, 1), z, y);
    // Six dimensions that do not merge.
    const HostTensor six = emptyTensor(dtype, {2, 3, 2, 3, 2, 8}, {1000, 300, 130, 40, 17, 1});
    checkSum(withRandom(six, 1), withRandom(emptyTensor(dtype, {3, 1, 3, 1, 8}), 2), six);
  }
}

TEST_P(Elementwise, MaximumKeepsNan) {
  for (const DType dtype : kFloats) {
    const HostTensor shape = emptyTensor(dtype, {3});
    const HostTensor x = withValues(shape, {NAN, 1, 2}), z = withValues(shape, {1, NAN, 3});
    for (const ElementwiseOp op : {ElementwiseOp::Maximum, ElementwiseOp::Minimum})
      expectNear(compute(op, x, z, shape),
                 [&](uint64_t i) { return reference(op, x.at(i), z.at(i)); });
  }
}

TEST_P(Elementwise, CopyConverts) {
  const DType dtypes[] = {DType::F32, DType::F16, DType::BF16, DType::I64,
                          DType::I32, DType::U8,  DType::Bool};
  for (const DType from : dtypes)
    for (const DType to : dtypes)
      for (const int64_t count : {5, 4096}) {
        SCOPED_TRACE(std::string(dtypeName(from)) + " to " + std::string(dtypeName(to)));
        std::vector<double> values(count);
        for (int64_t i = 0; i < count; ++i)
          values[i] = i % 120 - (from == DType::U8 || to == DType::U8 ? 0 : 60) +
                      (isFloating(from) ? i % 4 / 4.0 : 0);
        const HostTensor x = withValues(emptyTensor(from, {count}), values);
        const HostTensor y = copy(x, emptyTensor(to, {count}));
        if (to == DType::Bool)
          expectEqual(y, [&](uint64_t i) { return double(x.at(i) != 0); });
        else if (isFloating(to))
          expectNear(y, [&](uint64_t i) { return x.at(i); });
        else
          expectEqual(y, [&](uint64_t i) { return std::trunc(x.at(i)); });
      }
}

TEST_P(Elementwise, CopyPermutes) {
  for (int d = 0; d < kNumDTypes; ++d) {
    const auto dtype = DType(d);
    SCOPED_TRACE(dtypeName(dtype));
    for (const int64_t width : {1, 7, 64}) {
      // [2, 5, 12, width] seen as [2, 12, 5, width], and with the last dimension moved.
      for (const HostTensor &x :
           {emptyTensor(dtype, {2, 12, 5, width}, {60 * width, width, 12 * width, 1}),
            emptyTensor(dtype, {2, 12, 5, width}, {60 * width, 5, 1, 60})}) {
        std::vector<double> values(x.elements());
        for (uint64_t i = 0; i < values.size(); ++i)
          values[i] = i % 101;
        const HostTensor source = withValues(x, values);
        expectEqual(copy(source, emptyTensor(dtype, x.sizes)),
                    [&](uint64_t i) { return source.at(i); });
      }
    }
  }
}

} // namespace
} // namespace cgc::test

// elementwise against its f32 reference, which tests/numerics/elementwise_functions_test.cpp
// compares with LibTorch; copy, compare and where against double precision. Every op and
// conversion, broadcasting, strides.
#include "runtime/kernels/pointwise/compare.h"
#include "runtime/kernels/pointwise/elementwise.h"
#include "tests/conformance/kernel_fixture.h"

namespace cgc::test {
namespace {

bool reference(CompareOp op, double x, double y) {
  switch (op) {
  case CompareOp::Eq:
    return x == y;
  case CompareOp::Ne:
    return x != y;
  case CompareOp::Lt:
    return x < y;
  case CompareOp::Le:
    return x <= y;
  case CompareOp::Gt:
    return x > y;
  case CompareOp::Ge:
    return x >= y;
  }
  return false;
}

/// The tensor with random elements of five small numbers, or of two for bool, in all of its memory.
HostTensor withFew(HostTensor tensor, uint64_t seed) {
  std::vector<double> values(tensor.bytes.size() / dtypeSize(tensor.dtype));
  const bool isSigned = tensor.dtype != DType::U8 && tensor.dtype != DType::Bool;
  for (uint64_t i = 0; i < values.size(); ++i)
    values[i] =
        double(((i + 977 * seed) * 2654435761u >> 7) % (tensor.dtype == DType::Bool ? 2 : 5)) -
        (isSigned ? 2 : 0);
  return withValues(std::move(tensor), values);
}

/// Layouts of [24, 40]: dense, transposed, in a wider matrix, aligned and not, every second
/// element.
std::vector<HostTensor> layoutsOf(DType dtype) {
  const std::vector<int64_t> sizes = {24, 40};
  return {emptyTensor(dtype, sizes),
          emptyTensor(dtype, sizes, {1, 24}),
          emptyTensor(dtype, sizes, {64, 1}, 16),
          emptyTensor(dtype, sizes, {64, 1}, 3),
          emptyTensor(dtype, sizes, {65, 1}),
          emptyTensor(dtype, sizes, {80, 2})};
}

constexpr DType kCompared[] = {DType::F32, DType::F16, DType::BF16,
                               DType::I64, DType::I32, DType::Bool};

/// The tensor with its elements converted to f32.
HostTensor inF32(const HostTensor &tensor) {
  HostTensor result = tensor;
  result.dtype = DType::F32;
  result.bytes = encode(DType::F32, decodeAll(tensor.dtype, tensor.bytes));
  return result;
}

class Elementwise : public KernelTest {
protected:
  static uint64_t blocks(const HostTensor &y) { return elementwiseBlocks(y.elements(), 4); }

  /// Launches elementwise or compare.
  HostTensor operation(const std::string &kernel, int64_t op, const HostTensor &x,
                       std::optional<HostTensor> z, const HostTensor &y, double number) {
    return launch({.kernel = named(kernel, x.dtype),
                   .blocks = blocks(y),
                   .threads = kElementwiseThreads,
                   .reads = {x, std::move(z)},
                   .writes = {y},
                   .ints = {op},
                   .floats = {number}})[0];
  }
  HostTensor compute(ElementwiseOp op, const HostTensor &x, std::optional<HostTensor> z,
                     const HostTensor &y, double number = 0) {
    return operation("elementwise", int64_t(op), x, std::move(z), y, number);
  }
  /// The result in f32, by the reference of elementwise_f32: of 16-bit elements without rounding.
  HostTensor unrounded(ElementwiseOp op, const HostTensor &x, const std::optional<HostTensor> &z,
                       const HostTensor &y, double number = 0) {
    return launchReference({.kernel = "elementwise_f32",
                            .blocks = blocks(y),
                            .threads = kElementwiseThreads,
                            .reads = {inF32(x), z ? std::optional(inF32(*z)) : std::nullopt},
                            .writes = {inF32(y)},
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
  HostTensor compare(CompareOp op, const HostTensor &x, std::optional<HostTensor> z,
                     const HostTensor &y, double number = 0) {
    return operation("compare", int64_t(op), x, std::move(z), y, number);
  }
  void checkComparisons(const HostTensor &x, const HostTensor &z, const HostTensor &y) {
    for (int i = 0; i < kNumCompareOps; ++i) {
      const auto op = CompareOp(i);
      SCOPED_TRACE("op " + std::to_string(i));
      expectEqual(compare(op, x, z, y), [&](uint64_t k) {
        return double(reference(op, x.at(k, y.sizes), z.at(k, y.sizes)));
      });
    }
  }
  HostTensor where(std::optional<HostTensor> condition, std::optional<HostTensor> x,
                   std::optional<HostTensor> z, const HostTensor &y,
                   std::vector<double> numbers = {0, 0}) {
    return launch({.kernel = "where",
                   .blocks = blocks(y),
                   .threads = kElementwiseThreads,
                   .reads = {std::move(condition), std::move(x), std::move(z)},
                   .writes = {y},
                   .floats = std::move(numbers)})[0];
  }
  void checkChoice(const HostTensor &condition, const HostTensor &x, const HostTensor &z,
                   const HostTensor &y) {
    expectEqual(where(condition, x, z, y), [&](uint64_t i) {
      return condition.at(i, y.sizes) != 0 ? x.at(i, y.sizes) : z.at(i, y.sizes);
    });
  }
  /// Expects the result to be the unrounded one up to one rounding, the errors of f32 arithmetic
  /// and of fast functions, and cancellation. `number` is the second operand if `z` is absent.
  void expectUnrounded(ElementwiseOp op, const HostTensor &x, const std::optional<HostTensor> &z,
                       const HostTensor &y, double number = 0) {
    const HostTensor want = unrounded(op, x, z, y, number);
    expectNear(
        compute(op, x, z, y, number), [&](uint64_t i) { return want.at(i); },
        y.dtype == DType::F32 ? 1e-5 : 4e-6, 1e-6);
  }
  void checkSum(const HostTensor &x, const HostTensor &z, const HostTensor &y) {
    const HostTensor result = compute(ElementwiseOp::Add, x, z, y);
    expectNear(result, [&](uint64_t i) { return x.at(i, y.sizes) + z.at(i, y.sizes); });
  }
};
CGC_ON_ALL_EXECUTORS(Elementwise);

TEST_P(Elementwise, EveryOp) {
  for (const DType dtype : kFloats)
    for (int i = 0; i < kNumElementwiseOps; ++i) {
      const auto op = ElementwiseOp(i);
      SCOPED_TRACE("op " + std::to_string(i));
      const HostTensor shape = emptyTensor(dtype, {7, 77});
      const HostTensor random = withRandom(shape, 1), z = withRandom(shape, 2);
      // Elements of either sign, and positive ones for roots and powers.
      std::vector<double> positive(random.elements());
      for (uint64_t k = 0; k < positive.size(); ++k)
        positive[k] = std::abs(random.at(k)) + 0.125;
      for (const HostTensor &x : {random, withValues(shape, positive)}) {
        expectUnrounded(op, x, std::nullopt, shape, 1.7);
        if (isBinary(op))
          expectUnrounded(op, x, z, shape);
      }
    }
}

/// Two at a time and one by one. Integers wrap around.
TEST_P(Elementwise, OfIntegers) {
  const int64_t values[] = {
      0, 1, -1, 5, -1000000007, INT64_MAX, INT64_MIN, INT64_MAX / 3, INT64_MIN + 1};
  const auto withIntegers = [&](HostTensor tensor, size_t first) {
    const size_t count = tensor.bytes.size() / sizeof(int64_t);
    std::vector<int64_t> memory(count);
    for (size_t i = 0; i < count; ++i)
      memory[i] = values[(first + i * (first + 1)) % std::size(values)];
    std::memcpy(tensor.bytes.data(), memory.data(), tensor.bytes.size());
    return tensor;
  };
  const auto integer = [](const HostTensor &tensor, uint64_t i, const std::vector<int64_t> &sizes) {
    uint64_t value;
    std::memcpy(&value, tensor.bytes.data() + tensor.place(i, sizes) * sizeof(value),
                sizeof(value));
    return value;
  };
  const auto expected = [](ElementwiseOp op, uint64_t x, uint64_t z) {
    return op == ElementwiseOp::Abs          ? int64_t(x) < 0 ? 0 - x : x
           : op == ElementwiseOp::Neg        ? 0 - x
           : op == ElementwiseOp::Maximum    ? uint64_t(std::max(int64_t(x), int64_t(z)))
           : op == ElementwiseOp::Minimum    ? uint64_t(std::min(int64_t(x), int64_t(z)))
           : op == ElementwiseOp::Add        ? x + z
           : op == ElementwiseOp::Sub        ? x - z
           : op == ElementwiseOp::ReverseSub ? z - x
                                             : x * z;
  };
  for (const std::vector<int64_t> &sizes : {std::vector<int64_t>{}, {3}, {64}, {7, 77}, {5, 40000}})
    for (int i = 0; i < kNumElementwiseOps; ++i) {
      const auto op = ElementwiseOp(i);
      if (!takesIntegers(op))
        continue;
      SCOPED_TRACE("op " + std::to_string(i));
      const HostTensor y = emptyTensor(DType::I64, sizes), x = withIntegers(y, 1);
      const auto check = [&](const HostTensor &result, const auto &second) {
        for (uint64_t k = 0; k < y.elements(); ++k)
          ASSERT_EQ(integer(result, k, sizes), expected(op, integer(x, k, sizes), second(k)))
              << "element " << k;
      };
      check(compute(op, x, std::nullopt, y, -7), [](uint64_t) { return uint64_t(-7); });
      if (!isBinary(op))
        continue;
      const std::vector<int64_t> last(sizes.end() - (sizes.empty() ? 0 : 1), sizes.end());
      for (const HostTensor &z :
           {withIntegers(y, 2), withIntegers(emptyTensor(DType::I64, last), 4)})
        check(compute(op, x, z, y), [&](uint64_t k) { return integer(z, k, sizes); });
    }
}

/// As the step of an optimizer: the kernel writes what it reads.
TEST_P(Elementwise, CountsInPlace) {
  const HostTensor step = withValues(emptyTensor(DType::I64, {}), {41});
  expectEqual(launch({.kernel = "elementwise_i64",
                      .blocks = blocks(step),
                      .threads = kElementwiseThreads,
                      .reads = {step, std::nullopt},
                      .writes = {step},
                      .ints = {int64_t(ElementwiseOp::Add)},
                      .floats = {1},
                      .overwritten = 0})[0],
              [](uint64_t) { return 42.0; });
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
      expectUnrounded(op, x, std::nullopt, shape);
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
    // Writes to a part of a tensor.
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
      expectNear(compute(op, x, z, shape), [&](uint64_t i) {
        return i < 2 ? NAN : op == ElementwiseOp::Maximum ? 3 : 2;
      });
  }
}

TEST_P(Elementwise, GradientOfReluPassesNan) {
  for (const DType dtype : kFloats) {
    const HostTensor shape = emptyTensor(dtype, {5});
    const std::vector<double> results = {NAN, -0.0, 0, 0.5, INFINITY};
    const HostTensor gradient = withValues(shape, {1, 2, NAN, 4, NAN});
    expectNear(compute(ElementwiseOp::ReluBackward, gradient, withValues(shape, results), shape),
               [&](uint64_t i) { return results[i] <= 0 ? 0 : gradient.at(i); });
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

/// As PTX's cvt: a float outside an integer type saturates, and NaN is 0, or the least i64. A u8 is
/// the low byte of the i64.
TEST_P(Elementwise, CopyConvertsNanAndNumbersOutOfRange) {
  const double least32 = -0x1p31, most32 = 0x1p31 - 1, least64 = -0x1p63, most64 = 0x1p63;
  struct Case {
    double value, asI32, asI64, asU8;
  };
  const Case cases[] = {{NAN, 0, least64, 0},
                        {INFINITY, most32, most64, 255},
                        {-INFINITY, least32, least64, 0},
                        {0x1p63, most32, most64, 255},
                        {-0x1p64, least32, least64, 0},
                        {0x1p31, most32, 0x1p31, 0},
                        {-0x1p31, least32, -0x1p31, 0},
                        {-0x1.04p31, least32, -0x1.04p31, 0},
                        {0x1.fep30, 0x1.fep30, 0x1.fep30, 0},
                        {300, 300, 300, 44},
                        {-1, -1, -1, 255}};
  constexpr int64_t kCount = std::size(cases);
  std::vector<double> values;
  for (const Case &c : cases)
    values.push_back(c.value);
  for (const DType from : kFloats) {
    // f16 has no number beyond 65504: its largest values are infinities.
    const HostTensor x = withValues(emptyTensor(from, {kCount}), values);
    const auto expected = [&](uint64_t i, double Case::*as) {
      if (x.at(i) == cases[i].value || std::isnan(x.at(i)))
        return cases[i].*as;
      return cases[x.at(i) > 0 ? 1 : 2].*as;
    };
    const auto check = [&](DType to, double Case::*as) {
      SCOPED_TRACE(std::string(dtypeName(from)) + " to " + std::string(dtypeName(to)));
      expectEqual(copy(x, emptyTensor(to, {kCount})), [&](uint64_t i) { return expected(i, as); });
    };
    check(DType::I32, &Case::asI32);
    check(DType::I64, &Case::asI64);
    check(DType::U8, &Case::asU8);
    expectEqual(copy(x, emptyTensor(DType::Bool, {kCount})), [](uint64_t) { return 1.0; });
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

TEST_P(Elementwise, Compares) {
  for (const DType dtype : kCompared)
    for (const std::vector<int64_t> &sizes :
         {std::vector<int64_t>{}, {3}, {64}, {7, 77}, {64, 77}, {300000}}) {
      const HostTensor shape = emptyTensor(dtype, sizes), y = emptyTensor(DType::Bool, sizes);
      const HostTensor x = withFew(shape, 1);
      checkComparisons(x, withFew(shape, 2), y);
      for (int i = 0; i < kNumCompareOps; ++i)
        for (const double number : {0.0, 1.0})
          expectEqual(compare(CompareOp(i), x, std::nullopt, y, number),
                      [&](uint64_t k) { return double(reference(CompareOp(i), x.at(k), number)); });
    }
}

TEST_P(Elementwise, ComparesNanAndInfinity) {
  const double values[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1.0, -1.0};
  constexpr int64_t kCount = std::size(values);
  for (const DType dtype : kFloats) {
    const HostTensor x = withValues(emptyTensor(dtype, {kCount, 1}),
                                    {std::begin(values), std::end(values)}),
                     z = withValues(emptyTensor(dtype, {kCount}),
                                    {std::begin(values), std::end(values)});
    checkComparisons(x, z, emptyTensor(DType::Bool, {kCount, kCount}));
    const HostTensor y = emptyTensor(DType::Bool, {kCount});
    for (int i = 0; i < kNumCompareOps; ++i)
      for (const double number : values)
        expectEqual(compare(CompareOp(i), z, std::nullopt, y, number),
                    [&](uint64_t k) { return double(reference(CompareOp(i), z.at(k), number)); });
  }
}

TEST_P(Elementwise, ComparesWithTheNumberRounded) {
  for (const DType dtype : kFloats) {
    const HostTensor x = withValues(emptyTensor(dtype, {9}), std::vector<double>(9, 0.1)),
                     y = emptyTensor(DType::Bool, {9});
    ASSERT_NE(x.at(0), 0.1);
    for (int i = 0; i < kNumCompareOps; ++i)
      expectEqual(compare(CompareOp(i), x, std::nullopt, y, 0.1),
                  [&](uint64_t) { return double(reference(CompareOp(i), 1, 1)); });
  }
}

TEST_P(Elementwise, ComparesIntegersThatNoDoubleTellsApart) {
  HostTensor x = emptyTensor(DType::I64, {3}), z = x;
  const int64_t left[] = {INT64_MAX, INT64_MIN, (int64_t(1) << 53) + 1},
                right[] = {INT64_MAX - 1, INT64_MIN + 1, int64_t(1) << 53};
  std::memcpy(x.bytes.data(), left, sizeof(left));
  std::memcpy(z.bytes.data(), right, sizeof(right));
  const HostTensor y = emptyTensor(DType::Bool, {3});
  expectEqual(compare(CompareOp::Eq, x, z, y), [](uint64_t) { return 0.0; });
  expectEqual(compare(CompareOp::Lt, x, z, y), [](uint64_t i) { return i == 1 ? 1.0 : 0.0; });
  expectEqual(compare(CompareOp::Eq, x, std::nullopt, y, 0x1p53), [](uint64_t) { return 0.0; });
}

TEST_P(Elementwise, ComparesStridesAndBroadcasts) {
  for (const DType dtype : kCompared) {
    const HostTensor flat = withFew(emptyTensor(dtype, {24, 40}), 2),
                     y = emptyTensor(DType::Bool, {24, 40});
    for (const HostTensor &layout : layoutsOf(dtype)) {
      checkComparisons(withFew(layout, 1), flat, y);
      checkComparisons(flat, withFew(layout, 1), y);
    }
    for (const HostTensor &layout : layoutsOf(DType::Bool))
      checkComparisons(withFew(emptyTensor(dtype, {24, 40}), 1), flat, layout);
    for (const std::vector<int64_t> &sizes : {std::vector<int64_t>{40}, {24, 1}, {1}, {}}) {
      checkComparisons(withFew(emptyTensor(dtype, sizes), 1), flat, y);
      checkComparisons(flat, withFew(emptyTensor(dtype, sizes), 1), y);
    }
  }
}

TEST_P(Elementwise, WhereOfEveryDType) {
  for (int d = 0; d < kNumDTypes; ++d) {
    const auto dtype = DType(d);
    SCOPED_TRACE(dtypeName(dtype));
    for (const std::vector<int64_t> &sizes :
         {std::vector<int64_t>{}, {3}, {64}, {7, 77}, {300000}}) {
      const HostTensor shape = emptyTensor(dtype, sizes), x = withFew(shape, 1),
                       z = withFew(shape, 2),
                       condition = withFew(emptyTensor(DType::Bool, sizes), 3);
      checkChoice(condition, x, z, shape);
      // Numbers: integers for integer dtypes, otherwise rounded.
      const double number = isFloating(dtype) ? 1.7 : 1, other = isFloating(dtype) ? -INFINITY : 0;
      const double rounded = decode(dtype, encode(dtype, std::vector{number}).data(), 0);
      const auto holds = [&](uint64_t i) { return condition.at(i) != 0; };
      expectEqual(where(condition, std::nullopt, z, shape, {number, 0}),
                  [&](uint64_t i) { return holds(i) ? rounded : z.at(i); });
      expectEqual(where(condition, x, std::nullopt, shape, {0, other}),
                  [&](uint64_t i) { return holds(i) ? x.at(i) : other; });
      expectEqual(where(condition, std::nullopt, std::nullopt, shape, {number, other}),
                  [&](uint64_t i) { return holds(i) ? rounded : other; });
      // Without a condition.
      expectEqual(where(std::nullopt, std::nullopt, std::nullopt, shape, {number, 0}),
                  [&](uint64_t) { return rounded; });
    }
  }
}

TEST_P(Elementwise, WhereOfStridesAndBroadcasts) {
  for (const DType dtype : {DType::F32, DType::F16, DType::I64, DType::U8}) {
    const HostTensor flat = emptyTensor(dtype, {24, 40}), x = withFew(flat, 1),
                     z = withFew(flat, 2),
                     condition = withFew(emptyTensor(DType::Bool, {24, 40}), 3);
    for (const HostTensor &layout : layoutsOf(DType::Bool))
      checkChoice(withFew(layout, 3), x, z, flat);
    for (const HostTensor &layout : layoutsOf(dtype)) {
      checkChoice(condition, withFew(layout, 1), z, flat);
      checkChoice(condition, x, withFew(layout, 2), flat);
      checkChoice(condition, x, z, layout);
    }
    for (const std::vector<int64_t> &sizes : {std::vector<int64_t>{40}, {24, 1}, {1}, {}}) {
      checkChoice(withFew(emptyTensor(DType::Bool, sizes), 3), x, z, flat);
      checkChoice(condition, withFew(emptyTensor(dtype, sizes), 1), z, flat);
      checkChoice(condition, x, withFew(emptyTensor(dtype, sizes), 2), flat);
    }
  }
}

} // namespace
} // namespace cgc::test

// The kernels of the gradients of attention against double precision: odd numbers of queries and
// keys, causal, and heads in packed projections.
#include "runtime/kernels/attention/attention_backward.h"
#include "tests/conformance/kernel_fixture.h"

namespace cgc::test {
namespace {

struct AttentionBackwardCase {
  DType dtype;
  int64_t batch, heads, queries, keys, width;
  bool causal = false;
  bool packed = true; ///< Heads are parts of packed projections, and their gradients, too.
  bool infiniteQueries = false; ///< All scores of every third query are -infinity.
};

/// The operands of a case, and the expected results.
struct AttentionBackwardProblem {
  AttentionBackwardCase c;
  double scale;
  std::vector<std::optional<HostTensor>> reads; ///< The gradient of the result, q, k and v.
  std::vector<HostTensor> writes;               ///< The gradients of q, k and v.
  std::vector<double> expected[3], tolerance[3];

  explicit AttentionBackwardProblem(const AttentionBackwardCase &c)
      : c(c), scale(0.3 / std::sqrt(double(c.width))) {
    // A tensor of part `part` of `parts` of each token's columns. NaN fills the memory between the
    // rows of an operand.
    const auto heads = [&](int64_t rows, int64_t part, int64_t parts) {
      const int64_t token = parts * c.heads * c.width;
      const std::vector<int64_t> sizes = {c.batch, c.heads, rows, c.width};
      return c.packed ? emptyTensor(c.dtype, sizes, {rows * token, c.width, token, 1},
                                    part * c.heads * c.width)
                      : emptyTensor(c.dtype, sizes);
    };
    std::vector<double> values[4];
    for (int i = 0; i < 4; ++i) {
      const int64_t rows = i < 2 ? c.queries : c.keys;
      const auto floats = randomFloats(c.batch * c.heads * rows * c.width, i + 1);
      values[i] = decodeAll(c.dtype, encode(c.dtype, floats));
      if (c.infiniteQueries && i == 1)
        for (int64_t row = 1; row < c.batch * c.heads * rows; row += 3)
          values[i][row * c.width] = -INFINITY;
      if (c.infiniteQueries && i == 2)
        for (int64_t row = 0; row < c.batch * c.heads * rows; ++row)
          values[i][row * c.width] = 1;
      reads.emplace_back(
          withElements(i == 0 ? heads(rows, 0, 1) : heads(rows, i - 1, 3), values[i]));
      if (i > 0)
        writes.push_back(heads(rows, i - 1, 3));
    }
    compute(values[0], values[1], values[2], values[3]);
  }

private:
  using Numbers = std::vector<double>;

  double product(const Numbers &a, int64_t i, const Numbers &b, int64_t j) const {
    return std::inner_product(&a[i * c.width], &a[i * c.width] + c.width, &b[j * c.width], 0.0);
  }

  void compute(const Numbers &grad, const Numbers &q, const Numbers &k, const Numbers &v) {
    const double unit = rounding(c.dtype);
    Numbers magnitudes[3];
    for (int i = 0; i < 3; ++i) {
      expected[i].resize(i == 0 ? q.size() : k.size());
      magnitudes[i].resize(expected[i].size());
    }
    // Adds factor * row `j` of `b` to row `i` of a result; the factor has this error.
    const auto add = [&](int result, int64_t i, double factor, double error, const Numbers &b,
                         int64_t j) {
      for (int64_t d = 0; d < c.width; ++d) {
        expected[result][i * c.width + d] += factor * b[j * c.width + d];
        magnitudes[result][i * c.width + d] += error * std::abs(b[j * c.width + d]);
      }
    };
    Numbers weights(c.keys), slopes(c.keys);
    for (int64_t i = 0; i < c.batch * c.heads * c.queries; ++i) {
      const int64_t first = i / c.queries * c.keys, // The first key of the head.
          keys = c.causal ? std::min(c.keys, i % c.queries + 1) : c.keys;
      double total = 0, delta = 0, largest = 0;
      for (int64_t j = 0; j < keys; ++j) {
        weights[j] = std::exp(product(q, i, k, first + j) * scale);
        slopes[j] = product(grad, i, v, first + j);
        total += weights[j];
        largest = std::max(largest, std::abs(slopes[j]));
      }
      for (int64_t j = 0; j < keys; ++j) {
        weights[j] /= total == 0 ? 1 : total; // No key is visible: all weights are 0.
        delta += weights[j] * slopes[j];
      }
      for (int64_t j = 0; j < keys; ++j) {
        // The kernel rounds weights and their gradients to the element type, near 0 to its
        // subnormals. Computing exponents in f32 adds a relative error below 1e-4.
        const double slope = weights[j] * (slopes[j] - delta) * scale,
                     ofWeight = weights[j] * (unit + 1e-4) + smallest(c.dtype),
                     ofSlope = std::abs(slope) * unit +
                               scale * (2e-4 * weights[j] * largest + smallest(c.dtype));
        add(0, i, slope, ofSlope, k, first + j);
        add(1, first + j, slope, ofSlope, q, i);
        add(2, first + j, weights[j], ofWeight, grad, i);
      }
    }
    for (int result = 0; result < 3; ++result)
      for (size_t i = 0; i < expected[result].size(); ++i) {
        const double error = magnitudes[result][i];
        tolerance[result].push_back(error + unit * (std::abs(expected[result][i]) + error) +
                                    smallest(c.dtype) + 1e-6);
      }
  }
};

class AttentionBackward : public KernelTest {
protected:
  void check(const AttentionBackwardCase &c) {
    SCOPED_TRACE("batch=" + std::to_string(c.batch) + " heads=" + std::to_string(c.heads) +
                 " queries=" + std::to_string(c.queries) + " keys=" + std::to_string(c.keys) +
                 (c.causal ? " causal" : "") + (c.packed ? " packed" : "") +
                 (c.infiniteQueries ? " infinite" : ""));
    const AttentionBackwardProblem p(c);
    const std::vector<HostTensor> got =
        launch({.kernel = named("attention_backward", c.dtype) + "_" + std::to_string(c.width),
                .blocks = uint64_t(c.heads),
                .threads = uint32_t(attentionBackwardWarps(c.queries, c.keys) * 32),
                .reads = p.reads,
                .writes = p.writes,
                .ints = {c.batch, c.heads, c.queries, c.keys, c.causal},
                .floats = {p.scale},
                .blocksY = uint32_t(c.batch),
                .sharedBytes = uint32_t(attentionBackwardSharedBytes(c.queries, c.keys, c.width))});
    for (int result = 0; result < 3; ++result)
      for (uint64_t i = 0; i < got[result].elements(); ++i)
        if (std::isnan(p.expected[result][i])) // A gradient of 0 times an infinite query.
          ASSERT_TRUE(std::isnan(got[result].at(i)))
              << "row " << i / c.width << " column " << i % c.width << " of result " << result;
        else
          ASSERT_NEAR(got[result].at(i), p.expected[result][i], p.tolerance[result][i])
              << "row " << i / c.width << " column " << i % c.width << " of result " << result;
  }

  void checkShapes(int64_t width) {
    for (const DType dtype : {DType::F16, DType::BF16})
      // 257 rows of both need the shared memory of sm_90 and are in LongHeads.
      for (const auto &[queries, keys] : {std::pair<int64_t, int64_t>{1, 1},
                                          {16, 16},
                                          {50, 50},
                                          {77, 77},
                                          {50, 77},
                                          {77, 50},
                                          {1, 130},
                                          {130, 3}})
        for (const bool causal : {false, true}) {
          check({dtype, 2, 3, queries, keys, width, causal});
          check({dtype, 1, 2, queries, keys, width, causal, /*packed=*/false});
        }
  }
};
CGC_ON_ALL_EXECUTORS(AttentionBackward);

TEST_P(AttentionBackward, HeadsOf64) {
  checkShapes(64);
}
TEST_P(AttentionBackward, HeadsOf80) {
  checkShapes(80);
}

/// Queries whose scores are all -infinity. Not causal: there the gradients of keys that such a
/// query does not see are NaN or not, by the block that they are in.
TEST_P(AttentionBackward, InfiniteQueries) {
  for (const DType dtype : {DType::F16, DType::BF16})
    for (const int64_t width : {64, 80})
      for (const auto &[queries, keys] :
           {std::pair<int64_t, int64_t>{16, 16}, {50, 77}, {77, 50}, {130, 3}})
        check({dtype, 1, 2, queries, keys, width, /*causal=*/false, /*packed=*/true,
               /*infiniteQueries=*/true});
}

/// CTAs with more shared memory than sm_86 has.
TEST_P(AttentionBackward, LongHeads) {
  skipUnlessGpuRuns(kHopper);
  if (IsSkipped())
    return;
  for (const DType dtype : {DType::F16, DType::BF16})
    for (const bool causal : {false, true}) {
      check({dtype, 2, 2, 197, 197, 64, causal});
      check({dtype, 2, 2, 257, 257, 64, causal});
      check({dtype, 2, 2, 197, 197, 80, causal});
      check({dtype, 2, 2, 257, 257, 80, causal});
      check({dtype, 1, 2, 197, 257, 64, causal, /*packed=*/false});
    }
}

} // namespace
} // namespace cgc::test

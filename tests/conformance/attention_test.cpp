// Attention kernels against double precision: odd numbers of queries and keys, causal, masks,
// queries without a visible key, heads in packed projections, and every division of the work.
#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/attention/attention_f32.h"
#include "runtime/kernels/attention/attention_resident_kv.h"
#include "tests/conformance/kernel_fixture.h"

#include <limits>
#include <numbers>

namespace cgc::test {
namespace {

constexpr DType kHalfDTypes[] = {DType::F16, DType::BF16};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct AttentionCase {
  DType dtype;
  int64_t batch, heads, queries, keys, width;
  bool causal = false;
  /// OfKeys: one mask for all queries and heads. Repeated: half as many as batches. Padded: rows of
  /// an even number of elements, with one or two that are no keys.
  enum Mask { None, Full, OfKeys, Repeated, Padded } mask = None;
  bool packed = true; ///< Heads are parts of packed projections; results are stored token by token.
  bool nanInLast = false; ///< All values of the last batch are NaN.
  /// Scores of four of five queries grow at every 48th key, by about this many powers of two.
  int growth = 0;
  /// The rows of a mask that hide all keys. Rows are those of queries, or batches with OfKeys.
  enum Rows { NoRow, SomeRows, AllRows } hiddenRows = NoRow;
  double hidden = -kInfinity;   ///< What the mask adds to a hidden score.
  bool infiniteQueries = false; ///< All scores of some queries are -infinity.
};

/// Whether row `row` of a mask, or of the queries, is one of some: the first of four.
bool isSome(int64_t row) {
  return row % 4 == 0;
}

/// torch.finfo(dtype).min.
double lowest(DType dtype) {
  return dtype == DType::F16    ? -65504
         : dtype == DType::BF16 ? -0x1.fep127
                                : -double(std::numeric_limits<float>::max());
}

std::string describeCase(const AttentionCase &c) {
  return "batch=" + std::to_string(c.batch) + " heads=" + std::to_string(c.heads) +
         " queries=" + std::to_string(c.queries) + " keys=" + std::to_string(c.keys) +
         (c.causal ? " causal" : "") + " mask=" + std::to_string(int(c.mask)) +
         (c.packed ? " packed" : "") + (c.nanInLast ? " NaN" : "") +
         (c.growth > 0 ? " growth=" + std::to_string(c.growth) : "") +
         (c.hiddenRows == AttentionCase::NoRow     ? ""
          : c.hiddenRows == AttentionCase::AllRows ? " all"
                                                   : " some") +
         (std::isinf(c.hidden) ? "" : " lowest") + (c.infiniteQueries ? " infinite" : "");
}

/// The operands of a case, and the expected results.
struct AttentionProblem {
  AttentionCase c;
  double scale;
  HostTensor q, k, v, out;
  std::optional<HostTensor> mask;
  std::vector<double> expected, tolerance;

  explicit AttentionProblem(const AttentionCase &c)
      : c(c), scale(0.3 / std::sqrt(double(c.width))) {
    const auto values = [&](int64_t count, unsigned seed) {
      const auto floats = randomFloats(count, seed);
      return decodeAll(c.dtype, encode(c.dtype, floats));
    };
    // A tensor of part `part` of three of each token's columns. NaN fills the memory between the
    // rows.
    const auto heads = [&](int64_t rows, int64_t part) {
      const int64_t token = 3 * c.heads * c.width;
      const std::vector<int64_t> sizes = {c.batch, c.heads, rows, c.width};
      return c.packed ? emptyTensor(c.dtype, sizes, {rows * token, c.width, token, 1},
                                    part * c.heads * c.width)
                      : emptyTensor(c.dtype, sizes);
    };
    const int64_t all = c.batch * c.heads, qSize = all * c.queries * c.width,
                  kSize = all * c.keys * c.width;
    std::vector<double> qs = values(qSize, 1), ks = values(kSize, 2), vs = values(kSize, 3);
    if (c.growth > 0) {
      const double step = std::round(c.growth / (4 * scale * std::numbers::log2e));
      for (int64_t row = 0; row < all * c.queries; ++row)
        qs[row * c.width] = row % c.queries % 5 == 2 ? 0 : 4;
      std::vector<float> steps;
      for (int64_t key = 0; key < c.keys; ++key) {
        const int64_t block = key / 48;
        steps.push_back(float(step * double(block)));
      }
      const std::vector<double> rounded = decodeAll(c.dtype, encode(c.dtype, steps));
      for (int64_t row = 0; row < all * c.keys; ++row)
        ks[row * c.width] = rounded[row % c.keys];
    }
    if (c.infiniteQueries) { // The first columns of the keys are positive.
      for (int64_t row = 0; row < all * c.queries; ++row)
        if (isSome(row))
          qs[row * c.width] = -INFINITY;
      for (int64_t row = 0; row < all * c.keys; ++row)
        ks[row * c.width] = 1;
    }
    if (c.nanInLast)
      std::fill(vs.end() - kSize / c.batch, vs.end(), NAN);
    q = withElements(heads(c.queries, 0), qs);
    k = withElements(heads(c.keys, 1), ks);
    v = withElements(heads(c.keys, 2), vs);
    const std::vector<int64_t> sizes = {c.batch, c.heads, c.queries, c.width};
    out = c.packed ? emptyTensor(c.dtype, sizes,
                                 {c.queries * c.heads * c.width, c.width, c.heads * c.width, 1})
                   : emptyTensor(c.dtype, sizes);
    const std::vector<int64_t> maskSizes = {c.batch, c.heads, c.queries, c.keys};
    const int64_t pitch = c.mask == AttentionCase::Padded ? c.keys / 2 * 2 + 2 : c.keys;
    if (c.mask == AttentionCase::Full)
      mask = emptyTensor(c.dtype, maskSizes);
    else if (c.mask == AttentionCase::OfKeys)
      mask = emptyTensor(c.dtype, maskSizes, {c.keys, 0, 0, 1});
    else if (c.mask == AttentionCase::Repeated)
      mask = emptyTensor(c.dtype, {c.batch / 2, c.heads, c.queries, c.keys});
    else if (c.mask == AttentionCase::Padded)
      mask = emptyTensor(c.dtype, maskSizes,
                         {c.heads * c.queries * pitch, c.queries * pitch, pitch, 1});
    if (mask) {
      // Hides some keys; in long rows the whole first chunk; the last key only with all others.
      std::vector<double> entries = values(mask->bytes.size() / dtypeSize(c.dtype), 4);
      for (size_t i = 0; i < entries.size(); ++i) {
        const int64_t row = i / pitch, key = i % pitch;
        if ((key + 1 < c.keys && (key % 5 == 1 || (c.keys > 70 && key < 70))) ||
            c.hiddenRows == AttentionCase::AllRows ||
            (c.hiddenRows == AttentionCase::SomeRows && isSome(row)))
          entries[i] = c.hidden;
      }
      mask = withValues(*mask, entries);
    }
    compute(qs, ks, vs);
  }

private:
  /// What the mask adds to score `i`, in the order of [batch, heads, queries, keys].
  double maskAt(int64_t i) const {
    if (c.mask == AttentionCase::Repeated)
      return mask->at(i % int64_t(mask->elements()));
    return mask->at(i, {c.batch, c.heads, c.queries, c.keys});
  }

  void compute(const std::vector<double> &qs, const std::vector<double> &ks,
               const std::vector<double> &vs) {
    const double unit = rounding(c.dtype);
    std::vector<double> weights(c.keys), sums(c.width), magnitudes(c.width);
    for (int64_t row = 0; row < c.batch * c.heads * c.queries; ++row) {
      const int64_t head = row / c.queries, query = row % c.queries,
                    keys = c.causal ? std::min(c.keys, query + 1) : c.keys;
      double most = -INFINITY, total = 0;
      for (int64_t key = 0; key < keys; ++key) {
        double score = 0;
        for (int64_t d = 0; d < c.width; ++d)
          score += qs[row * c.width + d] * ks[(head * c.keys + key) * c.width + d];
        // A large mask absorbs the score, or all but its first bits, in f32. finfo.min of f16
        // counts as that of f32.
        double added = mask ? maskAt(row * c.keys + key) : 0;
        if (c.dtype == DType::F16 && added == lowest(DType::F16))
          added = lowest(DType::F32);
        weights[key] = mask ? float(score * scale + added) : score * scale;
        most = std::max(most, weights[key]);
      }
      if (most == -INFINITY) // No key is visible: all weights are 0.
        most = 0;
      const double spacing = std::abs(most) * 0x1p-23, // Of the sums in f32.
          ofSums = spacing < 1 ? 2 * spacing : 0;      // Those of finfo.min are equal.
      std::fill(sums.begin(), sums.end(), 0);
      std::fill(magnitudes.begin(), magnitudes.end(), 0);
      for (int64_t key = 0; key < keys; ++key) {
        const double weight = std::exp(weights[key] - most);
        const double *const value = &vs[(head * c.keys + key) * c.width];
        total += weight;
        for (int64_t d = 0; d < c.width; ++d) {
          sums[d] += weight * value[d];
          // The kernel rounds weights to the element type, near 0 to its subnormals. Computing
          // exponents in f32 adds a relative error below 1e-4, or 2e-5 without fast functions.
          const double ofWeight = unit + (c.dtype == DType::F32 ? 2e-5 : 1e-4) + ofSums;
          magnitudes[d] += (weight * ofWeight + smallest(c.dtype)) * std::abs(value[d]);
        }
      }
      for (int64_t d = 0; d < c.width; ++d) {
        const double divisor = total == 0 ? 1 : total, value = sums[d] / divisor,
                     error = magnitudes[d] / divisor;
        expected.push_back(value);
        tolerance.push_back(error + unit * (std::abs(value) + error) + smallest(c.dtype));
      }
    }
  }
};

class AttentionKernels : public KernelTest {
protected:
  static void expectAttention(const AttentionProblem &problem, const HostTensor &got) {
    for (uint64_t i = 0; i < got.elements(); ++i) {
      const double want = problem.expected[i];
      const int64_t row = i / problem.c.width;
      if (std::isnan(want))
        ASSERT_TRUE(std::isnan(got.at(i))) << "row " << row << " column " << i % problem.c.width;
      else
        ASSERT_NEAR(got.at(i), want, problem.tolerance[i])
            << "query " << row % problem.c.queries << " of head " << row / problem.c.queries
            << " column " << i % problem.c.width;
    }
  }

  /// Launches attention_DTYPE_COLUMNS + suffix.
  void check(const AttentionProblem &p, const std::string &suffix, int64_t warps, int64_t splits) {
    const AttentionCase &c = p.c;
    SCOPED_TRACE(describeCase(c) + " warps=" + std::to_string(warps) +
                 " splits=" + std::to_string(splits));
    const int64_t rows = warps / splits * kAttentionQueries;
    expectAttention(p, launch({.kernel = named("attention", c.dtype) + "_" +
                                         std::to_string(attentionColumns(c.width)) + suffix,
                               .blocks = uint64_t((c.queries + rows - 1) / rows),
                               .threads = uint32_t(warps * 32),
                               .reads = {p.q, p.k, p.v, p.mask},
                               .writes = {p.out},
                               .ints = {c.batch, c.heads, c.queries, c.keys, c.causal, splits},
                               .floats = {p.scale},
                               .blocksY = uint32_t(c.heads),
                               .blocksZ = uint32_t(c.batch),
                               .sharedBytes = attentionSharedBytes(
                                   c.keys, attentionColumns(c.width), warps, splits)})[0]);
  }

  /// Launches attention_resident_kv_DTYPE_KEYS. With `blocks` 0 there is a CTA for each item.
  void checkResidentKv(const AttentionProblem &p, const ResidentKvShape &shape,
                       uint64_t blocks = 0) {
    const AttentionCase &c = p.c;
    SCOPED_TRACE(describeCase(c) + " tiles=" + std::to_string(shape.tiles) +
                 " groups=" + std::to_string(shape.groups) +
                 " stages=" + std::to_string(shape.stages) + " blocks=" + std::to_string(blocks));
    const uint64_t items = shape.items(c.batch * c.heads, c.queries);
    expectAttention(p, launch({.kernel = named("attention_resident_kv", c.dtype) + "_" +
                                         std::to_string(residentKvKeys(c.keys)),
                               .blocks = blocks == 0 ? items : std::min(blocks, items),
                               .threads = uint32_t(shape.groups * 128),
                               .reads = {p.q, p.k, p.v},
                               .writes = {p.out},
                               .ints = {c.batch, c.heads, c.queries, c.keys, c.causal, shape.tiles,
                                        shape.stages},
                               .floats = {p.scale},
                               .sharedBytes = shape.sharedBytes(c.queries, c.keys)})[0]);
  }

  void checkSplitKv(const AttentionProblem &p) {
    const AttentionCase &c = p.c;
    SCOPED_TRACE(describeCase(c) + " halves");
    expectAttention(
        p, launch({.kernel = named("attention_split_kv", c.dtype),
                   .blocks = uint64_t(ResidentKvShape{1, 2, 1}.items(c.batch * c.heads, c.queries)),
                   .threads = 256,
                   .reads = {p.q, p.k, p.v},
                   .writes = {p.out},
                   .ints = {c.batch, c.heads, c.queries, c.keys},
                   .floats = {p.scale},
                   .sharedBytes = kSplitKvSharedBytes})[0]);
  }
};

class Attention : public AttentionKernels {
protected:
  /// Checks two divisions of the work, different ones in each call.
  void checkSome(const AttentionCase &c, const std::string &suffix) {
    constexpr std::pair<int64_t, int64_t> kCuts[] = {{1, 1}, {3, 1}, {8, 1}, {2, 2},
                                                     {8, 2}, {4, 4}, {8, 4}};
    const AttentionProblem problem(c);
    for (int i = 0; i < 2; ++i, step_ += 3) {
      const auto &[warps, splits] = kCuts[step_ % std::size(kCuts)];
      check(problem, suffix, warps, splits);
    }
  }
  void checkShapes(int64_t width, const std::string &suffix = "") {
    for (const DType dtype : kHalfDTypes) {
      // (queries, keys); 400 keys do not fit into the ring.
      for (const auto &[queries, keys] : {std::pair<int64_t, int64_t>{1, 1},
                                          {1, 257},
                                          {3, 16},
                                          {16, 3},
                                          {77, 77},
                                          {257, 257},
                                          {50, 400}})
        for (const bool causal : {false, true})
          checkSome({dtype, 1, 2, queries, keys, width, causal}, suffix);
      for (const int64_t keys : {1, 77, 400})
        for (const AttentionCase::Mask mask : {AttentionCase::Full, AttentionCase::OfKeys,
                                               AttentionCase::Repeated, AttentionCase::Padded})
          for (const bool causal : {false, true})
            checkSome({dtype, 4, 2, 33, keys, width, causal, mask}, suffix);
      for (const int64_t keys : {3, 77, 130}) {
        checkSome({dtype, 2, 3, 33, keys, width, false, AttentionCase::None, /*packed=*/false},
                  suffix);
        checkSome(
            {dtype, 2, 2, 33, keys, width, false, AttentionCase::None, true, /*nanInLast=*/true},
            suffix);
        checkSome({dtype, 2, 2, 33, keys, width, false, AttentionCase::None, false, true}, suffix);
      }
    }
  }

  /// Queries without a visible key, in each division of the work.
  void checkHiddenRows(int64_t width, const std::string &suffix = "") {
    for (const DType dtype : kHalfDTypes)
      for (const int64_t keys : {1, 77, 400})
        for (const AttentionCase::Mask mask : {AttentionCase::Full, AttentionCase::OfKeys})
          for (const AttentionCase::Rows rows : {AttentionCase::SomeRows, AttentionCase::AllRows})
            for (const double hidden : {-kInfinity, lowest(dtype)})
              for (const bool causal : {false, true})
                checkSome({.dtype = dtype,
                           .batch = 2,
                           .heads = 2,
                           .queries = 33,
                           .keys = keys,
                           .width = width,
                           .causal = causal,
                           .mask = mask,
                           .hiddenRows = rows,
                           .hidden = hidden},
                          suffix);
    for (const DType dtype : kHalfDTypes)
      for (const int64_t keys : {3, 130})
        for (const bool causal : {false, true})
          checkSome({.dtype = dtype,
                     .batch = 1,
                     .heads = 2,
                     .queries = 33,
                     .keys = keys,
                     .width = width,
                     .causal = causal,
                     .infiniteQueries = true},
                    suffix);
  }

private:
  unsigned step_ = 0;
};
CGC_ON_ALL_EXECUTORS(Attention);

TEST_P(Attention, HeadsOf32) {
  checkShapes(32);
}
TEST_P(Attention, HeadsOf64) {
  checkShapes(64);
}
TEST_P(Attention, HeadsOf80) {
  checkShapes(80);
}
TEST_P(Attention, HeadsOf96) {
  checkShapes(96);
}
TEST_P(Attention, HeadsOf112) {
  checkShapes(112);
}
TEST_P(Attention, HeadsOf128) {
  checkShapes(128);
}
/// Widths that a kernel pads with zeros. Memory has NaN in the padding.
TEST_P(Attention, HeadsOf8) {
  checkShapes(8);
}
TEST_P(Attention, HeadsOf24) {
  checkShapes(24);
}
TEST_P(Attention, HeadsOf48) {
  checkShapes(48);
}
TEST_P(Attention, HeadsOf72) {
  checkShapes(72);
}
TEST_P(Attention, HeadsOf88) {
  checkShapes(88);
}
TEST_P(Attention, HeadsOf104) {
  checkShapes(104);
}
TEST_P(Attention, HeadsOf120) {
  checkShapes(120);
}
TEST_P(Attention, HeadsOf64ByTensorCopies) {
  skipUnlessGpuRuns(kHopper);
  if (!IsSkipped())
    checkShapes(64, "_hopper");
}
TEST_P(Attention, HiddenRows) {
  for (const int64_t width : {24, 32, 48, 64, 80, 96, 112, 128})
    checkHiddenRows(width);
}
TEST_P(Attention, HiddenRowsByTensorCopies) {
  skipUnlessGpuRuns(kHopper);
  if (!IsSkipped())
    checkHiddenRows(64, "_hopper");
}

class AttentionF32 : public AttentionKernels {
protected:
  void check(const AttentionCase &c) {
    SCOPED_TRACE(describeCase(c) + " width=" + std::to_string(c.width));
    const AttentionProblem p(c);
    const int64_t blocks = (c.queries + kAttentionF32Queries - 1) / kAttentionF32Queries;
    expectAttention(p,
                    launch({.kernel = "attention_f32_" + std::to_string(attentionColumns(c.width)),
                            .blocks = uint64_t(blocks),
                            .threads = kAttentionF32Threads,
                            .reads = {p.q, p.k, p.v, p.mask},
                            .writes = {p.out},
                            .ints = {c.batch, c.heads, c.queries, c.keys, c.causal},
                            .floats = {p.scale},
                            .blocksY = uint32_t(c.heads),
                            .blocksZ = uint32_t(c.batch),
                            .sharedBytes = attentionF32SharedBytes(attentionColumns(c.width))})[0]);
  }
};
CGC_ON_ALL_EXECUTORS(AttentionF32);

constexpr int64_t kWidths[] = {8, 32, 48, 64, 72, 80, 88, 96, 104, 112, 128};

TEST_P(AttentionF32, OddShapes) {
  for (const int64_t width : kWidths)
    for (const auto &[queries, keys] : {std::pair<int64_t, int64_t>{1, 1},
                                        {1, 257},
                                        {3, 16},
                                        {31, 63},
                                        {32, 64},
                                        {33, 65},
                                        {77, 77},
                                        {257, 257},
                                        {50, 400}})
      for (const bool causal : {false, true})
        check({DType::F32, 2, 3, queries, keys, width, causal});
}

TEST_P(AttentionF32, MasksAndLayouts) {
  for (const int64_t width : kWidths)
    for (const int64_t keys : {1, 77, 130}) {
      for (const AttentionCase::Mask mask :
           {AttentionCase::Full, AttentionCase::OfKeys, AttentionCase::Repeated})
        for (const bool causal : {false, true})
          check({DType::F32, 4, 2, 33, keys, width, causal, mask});
      check({DType::F32, 2, 3, 33, keys, width, false, AttentionCase::None, /*packed=*/false});
    }
}

TEST_P(AttentionF32, HiddenRows) {
  for (const int64_t width : kWidths)
    for (const int64_t keys : {1, 77, 130})
      for (const bool causal : {false, true}) {
        for (const AttentionCase::Mask mask : {AttentionCase::Full, AttentionCase::OfKeys})
          for (const AttentionCase::Rows rows : {AttentionCase::SomeRows, AttentionCase::AllRows})
            for (const double hidden : {-kInfinity, lowest(DType::F32)})
              check({.dtype = DType::F32,
                     .batch = 2,
                     .heads = 2,
                     .queries = 33,
                     .keys = keys,
                     .width = width,
                     .causal = causal,
                     .mask = mask,
                     .hiddenRows = rows,
                     .hidden = hidden});
        check({.dtype = DType::F32,
               .batch = 1,
               .heads = 2,
               .queries = 33,
               .keys = keys,
               .width = width,
               .causal = causal,
               .infiniteQueries = true});
      }
}

TEST_P(AttentionF32, NanStaysInItsBatch) {
  for (const int64_t keys : {3, 64, 77})
    for (const bool packed : {false, true})
      check(
          {DType::F32, 2, 2, 33, keys, 64, false, AttentionCase::None, packed, /*nanInLast=*/true});
}

class AttentionResidentKv : public AttentionKernels {
protected:
  void SetUp() override {
    AttentionKernels::SetUp();
    skipUnlessGpuRuns(kHopper);
  }
  /// Checks three of 72 divisions of the work, different ones in each call.
  void checkSome(const AttentionCase &c) {
    constexpr int64_t kTiles[] = {1, 2, 4};
    const AttentionProblem problem(c);
    for (int i = 0; i < 3; ++i, step_ += 7)
      checkCut(problem, kTiles[step_ % 3], step_ / 3);
  }
  /// Checks one of 24 divisions for this number of tiles.
  void checkCut(const AttentionProblem &problem, int64_t tiles, unsigned way) {
    constexpr uint64_t kBlocks[] = {0, 3, 1}; // A CTA for each item, three CTAs, or one.
    checkResidentKv(problem, {tiles, 1 + way % 4, 1 + way / 4 % 2}, kBlocks[way / 8 % 3]);
  }

private:
  unsigned step_ = 0;
};
CGC_ON_ALL_EXECUTORS(AttentionResidentKv);

/// Around the key capacities of the kernels.
constexpr int64_t kSomeKeys[] = {1,   5,   50,  64,  65,  77,  81,  100,
                                 127, 128, 136, 197, 208, 209, 257, 272};

TEST_P(AttentionResidentKv, OddNumbersOfKeys) {
  for (const DType dtype : kHalfDTypes)
    for (const int64_t keys : kSomeKeys)
      for (const bool causal : {false, true})
        checkSome({dtype, 2, 2, keys, keys, 64, causal});
}

TEST_P(AttentionResidentKv, QueriesOtherThanKeys) {
  for (const DType dtype : kHalfDTypes)
    for (const int64_t keys : {5, 77, 100, 257})
      for (const int64_t queries : {1, 63, 130, 330})
        checkSome(
            {dtype, 1, 2, queries, keys, 64, queries == 130, AttentionCase::None, queries != 63});
}

/// Covers the rescaling of accumulators, which happens only if scores grow by more than kBaseSlack.
TEST_P(AttentionResidentKv, ScoresThatGrowAlongTheKeys) {
  for (const DType dtype : kHalfDTypes)
    for (const int growth : {7, 9, 35})
      for (const auto &[queries, keys] :
           {std::pair<int64_t, int64_t>{77, 77}, {100, 128}, {197, 197}, {257, 257}, {64, 272}})
        for (const bool causal : {false, true})
          checkSome({dtype, 1, 2, queries, keys, 64, causal, AttentionCase::None, true,
                     /*nanInLast=*/false, growth});
}

/// A single query beyond full tiles.
TEST_P(AttentionResidentKv, SingleQueries) {
  unsigned way = 0, problems = 0;
  for (const DType dtype : kHalfDTypes)
    for (const int64_t tiles : {2, 3, 4})
      for (const int64_t keys : {1, 5, 77, 100, 197, 257, 272})
        for (const bool causal : {false, true})
          for (const bool nan : {false, true}) {
            const AttentionProblem problem({dtype, 2, 3, tiles * kResidentKvQueries + 1, keys, 64,
                                            causal, AttentionCase::None, problems++ % 3 > 0, nan});
            for (int i = 0; i < 3; ++i, ++way)
              checkCut(problem, tiles, 7 * way);
          }
  // The lowering's launch for images of ViT-L-14 at batch 8.
  for (const DType dtype : kHalfDTypes)
    checkResidentKv(AttentionProblem({dtype, 8, 16, 257, 257, 64}), {4, 4, 2});
}

TEST_P(AttentionResidentKv, SplitKv) {
  for (const DType dtype : kHalfDTypes)
    for (const int64_t keys : {145, 152, 197, 208, 257, 280, 288})
      for (const int64_t queries : {1, 63, 130, 257})
        for (const bool nan : {false, true})
          checkSplitKv(AttentionProblem(
              {dtype, 2, 3, queries, keys, 64, false, AttentionCase::None, queries != 63, nan}));
  for (const int growth : {7, 9, 35})
    checkSplitKv(AttentionProblem(
        {DType::F16, 1, 2, 70, 257, 64, false, AttentionCase::None, true, false, growth}));
}

/// Queries whose scores are all -infinity, also the single query beyond full tiles.
TEST_P(AttentionResidentKv, InfiniteQueries) {
  const auto caseOf = [](DType dtype, int64_t queries, int64_t keys, bool causal) {
    return AttentionCase{.dtype = dtype,
                         .batch = 2,
                         .heads = 2,
                         .queries = queries,
                         .keys = keys,
                         .width = 64,
                         .causal = causal,
                         .infiniteQueries = true};
  };
  unsigned way = 0;
  for (const DType dtype : kHalfDTypes) {
    for (const int64_t keys : kSomeKeys)
      for (const bool causal : {false, true}) {
        checkSome(caseOf(dtype, 70, keys, causal));
        checkCut(AttentionProblem(caseOf(dtype, 2 * kResidentKvQueries + 1, keys, causal)), 2,
                 way++);
      }
    for (const int64_t keys : {145, 257, 288})
      checkSplitKv(AttentionProblem(caseOf(dtype, 70, keys, false)));
  }
}

TEST_P(AttentionResidentKv, NanStaysInItsBatch) {
  for (const DType dtype : kHalfDTypes)
    for (const int64_t keys : kSomeKeys)
      for (const bool packed : {false, true})
        checkSome(
            {dtype, 2, 2, 70, keys, 64, false, AttentionCase::None, packed, /*nanInLast=*/true});
}

} // namespace
} // namespace cgc::test

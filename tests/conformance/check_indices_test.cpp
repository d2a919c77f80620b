// check_indices: the first index out of range, of any integers in any layout.
#include "runtime/kernels/rowwise/check_indices.h"
#include "tests/conformance/kernel_fixture.h"

#include <algorithm>
#include <array>

namespace cgc::test {
namespace {

class CheckIndices : public KernelTest {
protected:
  using Report = std::array<int64_t, kReportNumbers>;
  static constexpr int64_t kLeast = -3, kEnd = 100, kExempt = 120, kCheck = 7;

  /// The report of a launch on `x`, before which the report is `before`.
  Report reportOf(const HostTensor &x, const Report &before = {}) {
    const HostTensor report =
        withValues(emptyTensor(DType::I64, {kReportNumbers}), {before.begin(), before.end()});
    const HostTensor y = launch({.kernel = "check_indices",
                                 .blocks = 1,
                                 .threads = kCheckIndicesThreads,
                                 .reads = {x, report},
                                 .writes = {report},
                                 .ints = {kLeast, kEnd, kExempt, kCheck, 1, 2, 3},
                                 .overwritten = 1})[0];
    Report result;
    for (size_t i = 0; i < result.size(); ++i)
      result[i] = int64_t(y.at(i));
    return result;
  }
};
CGC_ON_ALL_EXECUTORS(CheckIndices);

constexpr DType kIntegers[] = {DType::I64, DType::I32, DType::I16, DType::I8, DType::U8};

TEST_P(CheckIndices, ReportTheFirstIndexOutOfRange) {
  for (const DType dtype : kIntegers)
    for (const int64_t elements : {1, 77, 1024, 1025, 70000}) {
      SCOPED_TRACE(std::string(dtypeName(dtype)) + ", " + std::to_string(elements));
      std::vector<double> values(elements);
      for (int64_t i = 0; i < elements; ++i)
        values[i] = i % 5 == 3 ? double(kExempt) : double(i * 2654435761u >> 7 & 63);
      const HostTensor layout = emptyTensor(dtype, {elements});
      EXPECT_EQ(reportOf(withValues(layout, values)), Report{});
      for (const int64_t value : {kEnd, dtype == DType::U8 ? kEnd + 1 : kLeast - 1}) {
        std::vector<double> bad = values;
        for (const int64_t first : {elements - 1, elements / 2, int64_t(0)}) {
          bad[first] = double(value);
          EXPECT_EQ(reportOf(withValues(layout, bad)), (Report{kCheck, first, value, 1, 2, 3}));
        }
      }
    }
}

TEST_P(CheckIndices, BoundsAreAllowed) {
  EXPECT_EQ(reportOf(withValues(emptyTensor(DType::I64, {3}), {kLeast, kEnd - 1, kExempt})),
            Report{});
  EXPECT_EQ(reportOf(withValues(emptyTensor(DType::I64, {2}), {0, 1e12})),
            (Report{kCheck, 1, 1000000000000, 1, 2, 3}));
}

/// A part of a tensor: other elements are out of range.
TEST_P(CheckIndices, ReadTheirElementsOnly) {
  const HostTensor layout = emptyTensor(DType::I32, {5, 3, 2}, {31, 7, 3}, 4);
  std::vector<double> values(layout.bytes.size() / sizeof(int32_t), 1e6);
  for (uint64_t i = 0; i < layout.elements(); ++i)
    values[layout.place(i, layout.sizes)] = double(i);
  EXPECT_EQ(reportOf(withValues(layout, values)), Report{});
  values[layout.place(17, layout.sizes)] = 1234;
  EXPECT_EQ(reportOf(withValues(layout, values)), (Report{kCheck, 17, 1234, 1, 2, 3}));
  // Every row has the same elements.
  const HostTensor repeated = emptyTensor(DType::I32, {4, 3}, {0, 1});
  EXPECT_EQ(reportOf(withValues(repeated, {0, 0, 500})), (Report{kCheck, 2, 500, 1, 2, 3}));
}

TEST_P(CheckIndices, TheFirstReportStays) {
  const Report earlier = {3, 1, 4, 1, 5, 9};
  EXPECT_EQ(reportOf(withValues(emptyTensor(DType::I64, {2}), {500, 0}), earlier), earlier);
}

} // namespace
} // namespace cgc::test

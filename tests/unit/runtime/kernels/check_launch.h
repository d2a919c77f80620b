// Launches for tests of the checks of kernels. They must refuse anything unsafe, because a plan may
// come from an untrusted file.
#pragma once

#include "runtime/kernels/kernel_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace cgc::test {

inline constexpr uintptr_t kAddress = 1 << 20;

/// A tensor that is never accessed; `address` is arbitrary.
struct Tensor {
  uintptr_t address = 0; ///< 0: absent.
  std::vector<int64_t> sizes, strides = {};
  DType dtype = DType::F16;

  OperandView view() const { return {dtype, sizes, strides, alignmentOf(address)}; }
};

struct Launch {
  std::string kernel;
  std::array<uint32_t, 3> grid;
  uint32_t block[3];
  uint32_t sharedBytes;
  std::vector<Tensor> reads, writes;
  std::vector<int64_t> ints;
  std::vector<double> floats = {};

  /// The result of `f` for the view of the launch.
  template <class F> auto withView(F f) const {
    std::vector<OperandView> readViews, writeViews;
    for (const Tensor &tensor : reads)
      readViews.push_back(tensor.view());
    for (const Tensor &tensor : writes)
      writeViews.push_back(tensor.view());
    return f(LaunchView{grid, block, sharedBytes, readViews, writeViews, ints, floats});
  }

  Status check() const {
    const Kernel *row = findKernel(kernel);
    if (!row)
      return Status(Code::Unsupported, "there is no kernel " + kernel);
    EXPECT_TRUE(row->takesCountsOf(*this));
    return withView([&](const LaunchView &view) { return row->check(view); });
  }
};

/// Expects that `good` with this change is refused, with a message that contains `why`.
inline void expectRefused(const Launch &good, const std::function<void(Launch &)> &change,
                          const std::string &why) {
  Launch launch = good;
  change(launch);
  const Status status = launch.check();
  EXPECT_EQ(status.code(), Code::InvalidFile) << launch.kernel;
  EXPECT_THAT(status.message(), testing::HasSubstr(why)) << launch.kernel;
}
inline void expectTaken(const Launch &good) {
  const Status status = good.check();
  EXPECT_TRUE(status.isOk()) << good.kernel << ": " << status.message();
}

/// A change to a launch, and a part of the refusal's message.
struct Refusal {
  std::function<void(Launch &)> change;
  std::string why;
};

/// Expects that the kernel takes `good` and refuses it with each change.
inline void expectRefusals(const Launch &good, const std::vector<Refusal> &refusals) {
  const Status status = good.check();
  ASSERT_TRUE(status.isOk()) << good.kernel << ": " << status.message();
  for (size_t i = 0; i < refusals.size(); ++i) {
    SCOPED_TRACE("refusal " + std::to_string(i));
    expectRefused(good, refusals[i].change, refusals[i].why);
  }
}

/// Appends the refusals of every kernel with a fixed launch shape.
inline std::vector<Refusal> withLaunch(std::vector<Refusal> refusals) {
  const std::string why = "the grid has to be";
  for (int i = 0; i < 3; ++i) {
    refusals.push_back({[i](Launch &l) { ++l.grid[i]; }, why});
    refusals.push_back({[i](Launch &l) { l.block[i] *= 2; }, why});
  }
  refusals.push_back({[](Launch &l) { l.sharedBytes = 16; }, why});
  return refusals;
}

/// Selects a tensor of a launch that has to be dense, of one dtype and one size.
using TensorOf = std::function<Tensor &(Launch &)>;
inline void refuseOtherTensors(std::vector<Refusal> &refusals, const TensorOf &of,
                               const std::string &why, bool mayBeAbsent = false) {
  if (!mayBeAbsent)
    refusals.push_back({[of](Launch &l) { of(l).address = 0; }, why});
  refusals.push_back({[of](Launch &l) { of(l).dtype = DType::F64; }, why});
  refusals.push_back(
      {[of](Launch &l) { of(l).dtype = of(l).dtype == DType::F32 ? DType::F16 : DType::F32; },
       why});
  refusals.push_back({[of](Launch &l) { ++of(l).sizes.back(); }, why});
  refusals.push_back({[of](Launch &l) { --of(l).sizes.back(); }, why});
  refusals.push_back({[of](Launch &l) { of(l).sizes.front() *= 2; }, why});
  refusals.push_back({[of](Launch &l) { of(l).strides.assign(of(l).sizes.size(), 2); }, why});
}
inline TensorOf readOf(size_t i) {
  return [i](Launch &l) -> Tensor & { return l.reads[i]; };
}
inline TensorOf writeOf(size_t i) {
  return [i](Launch &l) -> Tensor & { return l.writes[i]; };
}

} // namespace cgc::test

// Launches for tests of bind functions, which check tensors and never access memory. They must
// refuse anything unsafe, because a plan may come from an untrusted file.
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

  TensorView view() const {
    return {reinterpret_cast<void *>(address), dtype, DeviceKind::Cuda, sizes, strides};
  }
};

struct Launch {
  std::string kernel;
  std::array<uint32_t, 3> grid;
  uint32_t block[3];
  uint32_t sharedBytes;
  std::vector<Tensor> reads, writes;
  std::vector<int64_t> ints;
  std::vector<double> floats = {};

  Result<KernelParameters> bind() const {
    const Kernel *row = findKernel(kernel);
    if (!row)
      return Status(Code::Unsupported, "there is no kernel " + kernel);
    std::vector<TensorView> readViews, writeViews;
    for (const Tensor &tensor : reads)
      readViews.push_back(tensor.view());
    for (const Tensor &tensor : writes)
      writeViews.push_back(tensor.view());
    EXPECT_EQ(reads.size(), row->reads);
    EXPECT_EQ(writes.size(), row->writes);
    EXPECT_EQ(ints.size(), row->ints);
    EXPECT_EQ(floats.size(), row->floats);
    return row->bind({.grid = grid,
                      .block = block,
                      .sharedBytes = sharedBytes,
                      .reads = readViews,
                      .writes = writeViews,
                      .ints = ints,
                      .floats = floats,
                      .onlyChecks = true});
  }
};

/// Expects that `good` with this change is refused, with a message that contains `why`.
inline void expectRefused(const Launch &good, const std::function<void(Launch &)> &change,
                          const std::string &why) {
  Launch launch = good;
  change(launch);
  const Status status = launch.bind().status();
  EXPECT_EQ(status.code(), Code::InvalidFile) << launch.kernel;
  EXPECT_THAT(status.message(), testing::HasSubstr(why)) << launch.kernel;
}
inline void expectTaken(const Launch &good) {
  const Status status = good.bind().status();
  EXPECT_TRUE(status.isOk()) << good.kernel << ": " << status.message();
}

/// A change to a launch, and a part of the refusal's message.
struct Refusal {
  std::function<void(Launch &)> change;
  std::string why;
};

/// Expects that the kernel takes `good` and refuses it with each change.
inline void expectRefusals(const Launch &good, const std::vector<Refusal> &refusals) {
  const Status status = good.bind().status();
  ASSERT_TRUE(status.isOk()) << good.kernel << ": " << status.message();
  for (size_t i = 0; i < refusals.size(); ++i) {
    SCOPED_TRACE("refusal " + std::to_string(i));
    expectRefused(good, refusals[i].change, refusals[i].why);
  }
}

} // namespace cgc::test

// checkViews: tensors without elements.
#include "runtime/exec/bucket_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::test {
namespace {

TEST(CheckViews, OnlyATensorWithoutElementsNeedsNoData) {
  for (const std::vector<int64_t> &sizes : {std::vector<int64_t>{0, 4}, {4, 0}, {4, 4}, {}}) {
    const IoTensor tensor{.name = "x", .dtype = DType::F32, .sizes = sizes};
    const TensorView view{nullptr, DType::F32, DeviceKind::Cpu, sizes, {}};
    const Status status = checkViews({&tensor, 1}, {&view, 1}, DeviceKind::Cpu, "input");
    if (*tensorBytes(DType::F32, sizes) == 0)
      EXPECT_TRUE(status.isOk()) << status.message();
    else
      EXPECT_THAT(status.message(), testing::HasSubstr("input 'x' has no data"));
  }
}

} // namespace
} // namespace cgc::test

// InputStaging on the fake GPU: which inputs go through it, and where they lie.
#include "runtime/exec/input_staging.h"
#include "tests/unit/fake_device/fake_cuda_test.h"

#include <array>
#include <numeric>

namespace cgc::test {
namespace {

using testing::ElementsAreArray;

TEST(InputStaging, HasTheLargeHostInputsWithoutBoundsBesideEachOther) {
  fake_cuda::reset();
  {
    const auto input = [](std::vector<int64_t> sizes) {
      IoTensor io;
      io.dtype = DType::F32;
      io.sizes = std::move(sizes);
      return io;
    };
    Bucket bucket;
    bucket.inputs = {input({5}), input({2}), input({7}), input({6}), input({8})};
    bucket.inputs[3].indexBounds.resize(1);
    PlanData plan;
    plan.entries = {{.name = "step", .buckets = {bucket}}};
    constexpr uint64_t kSmallest = 3 * sizeof(float);
    EXPECT_EQ(InputStaging::bytesFor(plan, 9 * sizeof(float)), 0u);
    const uint64_t bytes = InputStaging::bytesFor(plan, kSmallest);
    EXPECT_EQ(bytes, 3u * 256);
    const auto staging = InputStaging::create(bytes, kSmallest);
    ASSERT_TRUE(staging.isOk()) << staging.status().message();

    std::array<std::vector<float>, 4> values;
    std::vector<TensorView> views;
    for (size_t i = 0; i < values.size(); ++i) {
      values[i].resize(size_t(bucket.inputs[i].sizes[0]));
      std::iota(values[i].begin(), values[i].end(), 10.0F * float(i));
      views.push_back({values[i].data(), DType::F32, DeviceKind::Cpu, bucket.inputs[i].sizes, {}});
    }
    const DeviceFloats onDevice(8, 1);
    views.push_back({onDevice.data(), DType::F32, DeviceKind::Cuda, bucket.inputs[4].sizes, {}});

    const auto staged = (*staging)->begin(bucket, views);
    ASSERT_TRUE(staged.isOk()) << staged.status().message();
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (const size_t i : {0, 2}) {
      EXPECT_TRUE((*staging)->has((*staged)[i])) << i;
      std::vector<float> copied(values[i].size());
      ASSERT_EQ(cudaMemcpy(copied.data(), (*staged)[i].data, copied.size() * sizeof(float),
                           cudaMemcpyDeviceToHost),
                cudaSuccess);
      EXPECT_THAT(copied, ElementsAreArray(values[i])) << i;
    }
    for (const size_t i : {1, 3, 4}) { // Small, with bounds, on the device.
      EXPECT_FALSE((*staging)->has((*staged)[i])) << i;
      EXPECT_EQ((*staged)[i].data, views[i].data) << i;
    }
  }
  EXPECT_EQ(fake_cuda::allocatedBytes(), 0u);
  EXPECT_EQ(fake_cuda::liveHandles(), 0u);
  fake_cuda::reset();
}

} // namespace
} // namespace cgc::test

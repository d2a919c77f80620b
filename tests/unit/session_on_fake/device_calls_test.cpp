// Session on the fake GPU: the CUDA calls that a request makes, and several devices.
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/unit/runtime/session/served_plan.h"

#include <cuda_runtime_api.h>

#include <map>

namespace cgc::test {
namespace {

using testing::HasSubstr;

/// Floats in the memory of the current device.
class DeviceFloats final {
public:
  explicit DeviceFloats(size_t count) : count_(count) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void **>(&data_), count * sizeof(float)), cudaSuccess);
  }
  DeviceFloats(const DeviceFloats &) = delete;
  DeviceFloats &operator=(const DeviceFloats &) = delete;
  ~DeviceFloats() { (void)cudaFree(data_); }
  float *data() const { return data_; } ///< The fake GPU's memory is host memory.
  std::vector<float> values() const { return {data_, data_ + count_}; }

private:
  size_t count_;
  float *data_ = nullptr;
};

class DeviceCalls : public ServedPlanTest {
protected:
  DeviceCalls() { fake_cuda::reset({.devices = 2}); }
  ~DeviceCalls() override { fake_cuda::reset(); }

  const std::shared_ptr<const Plan> plan_ = toPlan(servedPlan());
};

TEST_F(DeviceCalls, ARequestOnAStreamAllocatesNothingAndWaitsForNothing) {
  Session session = createSession(plan_);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  for (const int64_t n : {16, 3, 100, 200}) { // Exact, padded, split, split and padded.
    const std::vector<int64_t> sizes = {n, 4};
    DeviceFloats x(4 * n), y(4 * n);
    for (int64_t i = 0; i < 4 * n; ++i)
      x.data()[i] = float(i);
    const TensorView in{x.data(), DType::F32, DeviceKind::Cuda, sizes, {}},
        out{y.data(), DType::F32, DeviceKind::Cuda, sizes, {}};
    fake_cuda::clearCalls();
    // The first run makes executables for these tensors.
    EXPECT_TRUE(session.run("rows", {&in, 1}, {&out, 1}, stream).isOk());
    EXPECT_EQ(fake_cuda::callCounts().waits, 0u);
    fake_cuda::clearCalls();
    EXPECT_TRUE(session.run("rows", {&in, 1}, {&out, 1}, stream).isOk());
    EXPECT_EQ(fake_cuda::callCounts().allocations, 0u);
    EXPECT_EQ(fake_cuda::callCounts().waits, 0u);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(y.values(), expected(sizes));
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

/// Rows that are padding, and rows that lie apart in the caller's tensor, cannot stay where they
/// are.
TEST_F(DeviceCalls, ARequestTouchesNothingBehindItsTensors) {
  Session session = createSession(plan_);
  for (const auto &[entry, sizes] :
       {std::pair<std::string_view, std::vector<int64_t>>("rows", {3, 4}),
        {"columns", {3, 7, 4}}}) {
    const size_t count = *tensorBytes(DType::F32, sizes) / sizeof(float);
    DeviceFloats x(count), y(count + 16);
    for (size_t i = 0; i < count; ++i)
      x.data()[i] = float(i);
    std::fill(y.data() + count, y.data() + count + 16, -7.f);
    const TensorView in{x.data(), DType::F32, DeviceKind::Cuda, sizes, {}},
        out{y.data(), DType::F32, DeviceKind::Cuda, sizes, {}};
    for (int run = 0; run < 2; ++run)
      EXPECT_TRUE(session.run(entry, {&in, 1}, {&out, 1}).isOk());
    std::vector<float> values = expected(sizes);
    values.resize(count + 16, -7.f);
    EXPECT_EQ(y.values(), values) << entry;
  }
}

TEST_F(DeviceCalls, ARequestWithoutAStreamWaitsForItsCopiesAndOnceMore) {
  Session session = createSession(plan_);
  fake_cuda::clearCalls();
  EXPECT_EQ(*run(session, "rows", {100, 4}), expected({100, 4}));
  EXPECT_EQ(fake_cuda::callCounts().allocations, 0u);
  // Four buckets copy results to pageable memory, which waits.
  EXPECT_EQ(fake_cuda::callCounts().waits, 4u + 1);
}

/// An index out of range would stop the device in a record of LibTorch.
TEST_F(DeviceCalls, AnIndexOutOfRangeInDeviceMemoryFailsTheRequest) {
  Session session = createSession(plan_);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const std::vector<int64_t> sizes = {6, 4}, idSizes = {6, 3}; // Runs of 4 and of 2 rows.
  {
    const DeviceFloats x(24), y(24), memory(36);
    std::fill_n(x.data(), 24, 1.f);
    auto *const ids = reinterpret_cast<int64_t *>(memory.data());
    std::fill_n(ids, 18, 99);
    const TensorView in[] = {{x.data(), DType::F32, DeviceKind::Cuda, sizes, {}},
                             {ids, DType::I64, DeviceKind::Cuda, idSizes, {}}};
    const TensorView out{y.data(), DType::F32, DeviceKind::Cuda, sizes, {}};
    for (const cudaStream_t on : {stream, cudaStream_t()}) {
      EXPECT_TRUE(session.run("ids", in, {&out, 1}, on).isOk());
      ids[5 * 3 + 1] = 100;
      const Status refused = session.run("ids", in, {&out, 1}, on);
      EXPECT_EQ(refused.code(), Code::Usage);
      EXPECT_THAT(refused.message(), testing::AllOf(HasSubstr("input 'ids': element [5,1] is 100"),
                                                    HasSubstr("from 0 to 99")));
      ids[5 * 3 + 1] = 0;
      EXPECT_TRUE(session.run("ids", in, {&out, 1}, on).isOk());
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    }
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(DeviceCalls, ARequestRunsOnTheDeviceOfItsStream) {
  Session session = createSession(plan_, {.devices = {0, 1}, .contexts = 2});
  for (const int device : {1, 0}) {
    ASSERT_EQ(cudaSetDevice(device), cudaSuccess);
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    {
      const std::vector<int64_t> sizes = {5, 4};
      DeviceFloats x(20), y(20);
      for (int i = 0; i < 20; ++i)
        x.data()[i] = float(i);
      const TensorView in{x.data(), DType::F32, DeviceKind::Cuda, sizes, {}},
          out{y.data(), DType::F32, DeviceKind::Cuda, sizes, {}};
      for (int i = 0; i < 4; ++i)
        EXPECT_TRUE(session.run("rows", {&in, 1}, {&out, 1}, stream).isOk());
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_EQ(y.values(), expected(sizes));
    }
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(*run(session, "rows", {5, 4}), expected({5, 4}));
  int current = -1;
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 0); // The caller's device stays.
}

TEST_F(DeviceCalls, WeightsAreUploadedOnceAndCopiedToOtherDevices) {
  fake_cuda::reset({.devices = 3});
  const auto counts = [&](const SessionOptions &options) {
    fake_cuda::clearCalls();
    Session session = createSession(plan_, options);
    std::map<std::string_view, int> calls;
    for (const fake_cuda::Call &call : fake_cuda::calls())
      ++calls[call.function];
    EXPECT_EQ(*run(session, "rows", {5, 4}), expected({5, 4}));
    // Each device has a context, whose checks of indices report to pinned memory.
    const int contexts = int(std::max<size_t>(options.devices.size(), 1));
    return std::pair(calls["cudaMallocHost"] - contexts, calls["cudaMemcpyPeerAsync"]);
  };
  const auto [staged, none] = counts({});
  EXPECT_GT(staged, 0);
  EXPECT_EQ(none, 0);
  EXPECT_EQ(counts({.devices = {2, 0, 1}}), std::pair(staged, 2));
}

TEST_F(DeviceCalls, AStreamOfADeviceWithoutContextsIsRefused) {
  fake_cuda::reset({.devices = 3});
  Session session = createSession(plan_, {.devices = {0, 1}}), one = createSession(plan_);
  ASSERT_EQ(cudaSetDevice(2), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  std::vector<float> x(4), y(4);
  const std::vector<int64_t> sizes = {1, 4};
  const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}},
      out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
  for (Session *const with : {&session, &one}) {
    const Status refused = with->run("rows", {&in, 1}, {&out, 1}, stream);
    EXPECT_EQ(refused.code(), Code::Usage);
    EXPECT_THAT(refused.message(), HasSubstr("the stream is of GPU 2"));
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(DeviceCalls, AddressesHaveToBeWhatTheViewsSay) {
  Session session = createSession(plan_, {.devices = {0, 1}});
  const std::vector<int64_t> sizes = {1, 4};
  std::vector<float> host(4), result(4);
  DeviceFloats onZero(4);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  DeviceFloats onOne(4);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  const auto view = [&](float *data, DeviceKind device) {
    return TensorView{data, DType::F32, device, sizes, {}};
  };
  const auto message = [&](const TensorView &in, const TensorView &out) {
    const Status status = session.run("rows", {&in, 1}, {&out, 1});
    EXPECT_EQ(status.code(), Code::Usage);
    return status.message();
  };
  EXPECT_THAT(
      message(view(host.data(), DeviceKind::Cuda), view(result.data(), DeviceKind::Cpu)),
      HasSubstr("input 'x' is said to be in device memory, and its address is of the host"));
  EXPECT_THAT(message(view(host.data(), DeviceKind::Cpu), view(onZero.data(), DeviceKind::Cpu)),
              HasSubstr("output 'y' is said to be in host memory, and its address is of GPU 0"));
  EXPECT_THAT(message(view(onZero.data(), DeviceKind::Cuda), view(onOne.data(), DeviceKind::Cuda)),
              HasSubstr("output 'y' is in the memory of GPU 1, and the request runs on GPU 0"));
  // A request runs on the device of its views.
  const TensorView in = view(onOne.data(), DeviceKind::Cuda),
                   out = view(result.data(), DeviceKind::Cpu);
  std::fill_n(onOne.data(), 4, 1.f);
  EXPECT_TRUE(session.run("rows", {&in, 1}, {&out, 1}).isOk());
  EXPECT_EQ(result, (std::vector<float>{0, 1, 2, 3}));
}

TEST_F(DeviceCalls, ManagedMemoryIsOfTheHostAndOfEachDevice) {
  Session session = createSession(plan_, {.devices = {0, 1}});
  const std::vector<int64_t> sizes = {1, 4};
  float *x = nullptr, *y = nullptr;
  for (float **const data : {&x, &y})
    ASSERT_EQ(cudaMallocManaged(reinterpret_cast<void **>(data), 16), cudaSuccess);
  for (const DeviceKind from : {DeviceKind::Cpu, DeviceKind::Cuda})
    for (const DeviceKind to : {DeviceKind::Cpu, DeviceKind::Cuda}) {
      const TensorView in{x, DType::F32, from, sizes, {}}, out{y, DType::F32, to, sizes, {}};
      std::fill_n(x, 4, 1.f);
      std::fill_n(y, 4, -1.f);
      const Status status = session.run("rows", {&in, 1}, {&out, 1});
      EXPECT_TRUE(status.isOk()) << status.message();
      EXPECT_THAT(std::vector(y, y + 4), testing::ElementsAre(0, 1, 2, 3));
    }
  for (float *const data : {x, y})
    EXPECT_EQ(cudaFree(data), cudaSuccess);
}

} // namespace
} // namespace cgc::test

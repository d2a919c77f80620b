// Session on the fake GPU: the CUDA calls that a request makes, several devices, and a failure of
// every CUDA call.
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/unit/runtime/session/served_plan.h"

#include <cuda_runtime_api.h>

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
    EXPECT_TRUE(session.run("rows", {&in, 1}, {&out, 1}, stream).isOk());
    EXPECT_EQ(fake_cuda::callCounts().allocations, 0u);
    EXPECT_EQ(fake_cuda::callCounts().waits, 0u);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(y.values(), expected(sizes));
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(DeviceCalls, ARequestWithoutAStreamWaitsForItsCopiesAndOnceMore) {
  Session session = createSession(plan_);
  fake_cuda::clearCalls();
  EXPECT_EQ(*run(session, "rows", {100, 4}), expected({100, 4}));
  EXPECT_EQ(fake_cuda::callCounts().allocations, 0u);
  // Four buckets copy results to pageable memory, which waits.
  EXPECT_EQ(fake_cuda::callCounts().waits, 4u + 1);
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

TEST_F(DeviceCalls, AStreamOfADeviceWithoutContextsIsRefused) {
  fake_cuda::reset({.devices = 3});
  Session session = createSession(plan_, {.devices = {0, 1}});
  ASSERT_EQ(cudaSetDevice(2), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  std::vector<float> x(4), y(4);
  const std::vector<int64_t> sizes = {1, 4};
  const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}},
      out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
  const Status refused = session.run("rows", {&in, 1}, {&out, 1}, stream);
  EXPECT_EQ(refused.code(), Code::Usage);
  EXPECT_THAT(refused.message(), HasSubstr("the stream is of GPU 2"));
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

/// Creates a session in a memory pool, runs, swaps weights, updates and destroys, and returns the
/// first error.
class Lifetime : public DeviceCalls {
protected:
  Status live() {
    CGC_ASSIGN_OR_RETURN(const auto pool, MemoryPool::create({.target = DeviceKind::Cuda}));
    SessionOptions options{.contexts = 2};
    options.engine.provider = &provider_;
    options.engine.pool = pool;
    CGC_ASSIGN_OR_RETURN(Session session, Session::create(small_, options));
    for (const int64_t n : {1, 6, 3}) // Exact, split, padded.
      CGC_TRY(run(session, "rows", {n, 4}).status());
    CGC_TRY(session.swapWeights(other_));
    CGC_TRY(session.update(small_));
    return run(session, "columns", {3, 4, 4}).status();
  }
  /// Few buckets, because each call of a life fails in a life of its own.
  static std::shared_ptr<const Plan> smallPlan(const std::vector<float> &w) {
    SamplePlan sample = servedPlan(w);
    std::vector<Entry> &entries = sample.plan.entries;
    entries = {entries[0], entries[2]};
    entries[0].buckets.resize(2);
    entries[1].buckets.resize(1);
    return toPlan(sample);
  }
  const std::shared_ptr<const Plan> small_ = smallPlan({1, 2, 3, 4}),
                                    other_ = smallPlan({5, 6, 7, 8});
};

TEST_F(Lifetime, EveryFailedCallIsNamedAndLeaksNothing) {
  const uint64_t bytes = fake_cuda::allocatedBytes();
  const size_t handles = fake_cuda::liveHandles();
  int failures = 0;
  for (int nth = 1;; ++nth) {
    fake_cuda::reset({.devices = 2});
    fake_cuda::failAnyCall(nth, cudaErrorInvalidValue);
    const Status status = live();
    const bool allWereCalled = fake_cuda::callCounts().all < size_t(nth);
    failures += !status.isOk();
    if (!status.isOk()) {
      EXPECT_THAT(status.message(), HasSubstr("cudaErrorInvalidValue")) << nth;
    }
    EXPECT_EQ(fake_cuda::allocatedBytes(), bytes) << nth << ": " << status.message();
    EXPECT_EQ(fake_cuda::liveHandles(), handles) << nth << ": " << status.message();
    EXPECT_EQ(provider_.captures, 0) << nth;
    EXPECT_EQ(provider_.pools, 0) << nth;
    if (allWereCalled)
      break;
    ASSERT_LT(nth, 20'000);
  }
  EXPECT_GT(failures, 100);
  fake_cuda::reset({.devices = 2});
  EXPECT_TRUE(live().isOk());
}

TEST_F(Lifetime, AThousandFailedCapturesLeakNothing) {
  const uint64_t bytes = fake_cuda::allocatedBytes();
  const size_t handles = fake_cuda::liveHandles();
  for (int i = 0; i < 1000; ++i) {
    fake_cuda::failCall("cudaStreamEndCapture", 1, cudaErrorStreamCaptureInvalidated);
    EXPECT_THAT(live().message(), HasSubstr("cudaErrorStreamCaptureInvalidated"));
  }
  EXPECT_EQ(fake_cuda::allocatedBytes(), bytes);
  EXPECT_EQ(fake_cuda::liveHandles(), handles);
}

TEST_F(Lifetime, AfterAStickyFaultEachCallReturnsIt) {
  {
    Session session = createSession(plan_);
    fake_cuda::failCall("cudaGraphLaunch", 1, cudaErrorIllegalAddress, /*sticky=*/true);
    for (int i = 0; i < 3; ++i) {
      const Status failed = run(session, "rows", {1, 4}).status();
      EXPECT_EQ(failed.code(), Code::Device);
      EXPECT_THAT(failed.message(), HasSubstr("cudaErrorIllegalAddress"));
      EXPECT_FALSE(session.healthy());
    }
    EXPECT_EQ(session.stats().failuresByCode[size_t(Code::Device)], 3u);
    EXPECT_THAT(session.reset().message(), HasSubstr("cudaErrorIllegalAddress"));
    EXPECT_FALSE(session.healthy());
    fake_cuda::reset({.devices = 2}); // Now the driver allows it.
    EXPECT_TRUE(session.reset().isOk());
    EXPECT_TRUE(session.healthy());
    EXPECT_EQ(*run(session, "rows", {5, 4}), expected({5, 4}));
  }
  fake_cuda::reset({.devices = 2});
  EXPECT_TRUE(live().isOk());
}

} // namespace
} // namespace cgc::test

// The shared arena of a memory pool after a run or a growth that failed.
#include "runtime/base/no_throw.h"
#include "tests/fake_cuda/failing_allocations.h"
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/unit/runtime/session/served_plan.h"

#include <cuda_runtime_api.h>

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PooledFaults : public ServedPlanTest {
protected:
  PooledFaults() { fake_cuda::reset(); }
  ~PooledFaults() override { fake_cuda::reset(); }

  const std::shared_ptr<const Plan> plan_ = toPlan(servedPlan());
};

/// The run has launched its graph, which is still in flight and uses the arena, and cannot copy its
/// results.
TEST_F(PooledFaults, WhatAFailedRunLeavesInFlightGoesBeforeTheNextRun) {
  SessionOptions options;
  options.engine.pool = *MemoryPool::create({});
  Session first = createSession(plan_, options), second = createSession(plan_, options);
  cudaStream_t streams[2] = {};
  for (cudaStream_t &stream : streams)
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  std::vector<float> ran; // The first number of each run.
  onNeg = [&](const std::vector<float> &x) { ran.push_back(x[0]); };
  const std::vector<int64_t> sizes = {1, 4};
  std::vector<float> x[2] = {{10, 11, 12, 13}, {20, 21, 22, 23}},
                     y[2] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  const auto run = [&](Session &session, int i) {
    const TensorView in{x[i].data(), DType::F32, DeviceKind::Cpu, sizes, {}},
        out{y[i].data(), DType::F32, DeviceKind::Cpu, sizes, {}};
    return session.run("rows", {&in, 1}, {&out, 1}, streams[i]);
  };
  fake_cuda::failCall("cudaMemcpyAsync", 2, cudaErrorInvalidValue);
  // The runtime would wait here for what the run has enqueued.
  fake_cuda::failCall("cudaStreamSynchronize", 1, cudaErrorInvalidValue);
  EXPECT_THAT(run(first, 0).message(), HasSubstr("cudaMemcpyAsync returned"));
  EXPECT_THAT(ran, ElementsAre());
  ASSERT_TRUE(run(second, 1).isOk());
  ASSERT_EQ(cudaStreamSynchronize(streams[1]), cudaSuccess);
  EXPECT_THAT(ran, ElementsAre(10, 20));
  EXPECT_EQ(y[1], expected(sizes, 20));
  ASSERT_TRUE(run(first, 0).isOk());
  ASSERT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
  EXPECT_EQ(y[0], expected(sizes, 10));
  for (const cudaStream_t stream : streams)
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

/// The limit has room for one page of the arena.
TEST_F(PooledFaults, AGrowthThatFailedTakesNothingOfTheLimit) {
  SessionOptions options;
  options.engine.pool = *MemoryPool::create({.limit = 3 << 20});
  options.engine.provider = &provider_;
  const size_t handles = fake_cuda::liveHandles();
  const uint64_t bytes = fake_cuda::allocatedBytes();
  for (const char *function : {"cuMemCreate", "cuMemMap", "cuMemSetAccess"}) {
    bool hasAll = false; // The allocations of the host that it needs to say so.
    for (long count = 0; !hasAll; ++count) {
      fake_cuda::reset();
      fake_cuda::failCall(function, 1, cudaErrorMemoryAllocation);
      allocationsLeft = count;
      const Status status = noThrow([&] { return Session::create(plan_, options).status(); });
      hasAll = allocationsLeft >= 0;
      allocationsLeft = -1;
      EXPECT_EQ(status.code(), Code::OutOfMemory) << status.message();
      if (hasAll) {
        EXPECT_THAT(status.message(), HasSubstr(std::string(function) + " returned"));
      }
      ASSERT_EQ(fake_cuda::liveHandles(), handles) << function << ", allocation " << count;
      ASSERT_EQ(fake_cuda::allocatedBytes(), bytes) << function << ", allocation " << count;
    }
  }
  Session session = createSession(plan_, options);
  EXPECT_EQ(*run(session, "rows", {3, 4}), expected({3, 4}));
}

} // namespace
} // namespace cgc::test

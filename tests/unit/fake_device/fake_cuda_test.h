// The fixture of the tests of the fake GPU's own rules: fresh machines, and streams, events and
// memory that are freed with the test.
#pragma once

#include "runtime/exec/cuda_support.h"
#include "runtime/kernels/device/device_kernels.h"
#include "tests/fake_cuda/fake_cuda.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace cgc::test {

/// Elements in memory of the device that is current when they are created.
template <class T> class DeviceArray final {
public:
  explicit DeviceArray(size_t count = 1, T value = 0) : count_(count) {
    EXPECT_EQ(cudaMalloc(&data_, bytes()), cudaSuccess);
    set(value);
  }
  DeviceArray(const DeviceArray &) = delete;
  DeviceArray &operator=(const DeviceArray &) = delete;
  ~DeviceArray() { (void)cudaFree(data_); }

  T *data() const { return static_cast<T *>(data_); }
  size_t bytes() const { return count_ * sizeof(T); }
  // The fake GPU's memory is the host's. Neither function waits for anything.
  void set(T value) { std::fill_n(data(), count_, value); }
  std::vector<T> now() const { return {data(), data() + count_}; }

private:
  size_t count_;
  void *data_ = nullptr;
};
using DeviceInts = DeviceArray<int>;
using DeviceFloats = DeviceArray<float>;

class FakeCuda : public testing::Test {
protected:
  FakeCuda() { fake_cuda::reset(); }
  ~FakeCuda() override {
    streams_.clear();
    events_.clear();
    graphs_.clear();
    execs_.clear();
    fake_cuda::reset();
  }

  cudaStream_t stream(unsigned flags = cudaStreamNonBlocking) {
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
    streams_.emplace_back(stream);
    return stream;
  }
  cudaEvent_t event(unsigned flags = cudaEventDefault) {
    cudaEvent_t event = nullptr;
    EXPECT_EQ(cudaEventCreateWithFlags(&event, flags), cudaSuccess);
    events_.emplace_back(event);
    return event;
  }
  /// Owns `graph`.
  cudaGraph_t keep(cudaGraph_t graph) {
    graphs_.emplace_back(graph);
    return graph;
  }
  cudaGraphExec_t instantiate(cudaGraph_t graph) {
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    execs_.emplace_back(exec);
    return exec;
  }

  /// Appends `number` to `ran` when it runs on `on`.
  void log(cudaStream_t on, int number) {
    EXPECT_EQ(fake_cuda::enqueue(on, [this, number] { ran.push_back(number); }), cudaSuccess);
  }
  std::vector<int> ran;

private:
  std::vector<CudaStream> streams_;
  std::vector<CudaEvent> events_;
  std::vector<CudaGraph> graphs_;
  std::vector<CudaGraphExec> execs_;
};

} // namespace cgc::test

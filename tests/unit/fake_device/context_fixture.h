// The fixture of the tests of Engine and Context on the fake GPU: a plan with target cuda, whose
// ops are host code.
#pragma once

#include "runtime/exec/engine.h"
#include "tests/unit/fake_device/fake_cuda_test.h"
#include "tests/unit/runtime/fake_provider.h"
#include "tests/unit/runtime/sample_plan.h"

namespace cgc::test {

inline Status enqueue(void *stream, std::function<void()> work) {
  const cudaError_t error = fake_cuda::enqueue(cudaStream_t(stream), std::move(work));
  return error == cudaSuccess ? Status::ok() : Status(Code::Device, cudaGetErrorName(error));
}

/// Computes -x.
inline Status negate(const FakeCall &f, void *stream) {
  const auto *x = static_cast<const float *>(f.arguments[0]);
  auto *y = static_cast<float *>(f.outputs[0]);
  const int64_t n = f.elements(f.call.outputs[0]);
  return enqueue(stream, [=] { std::transform(x, x + n, y, std::negate<>()); });
}

/// Computes x + w, with w repeated.
inline Status addRows(const FakeCall &f, void *stream) {
  const auto *x = static_cast<const float *>(f.arguments[0]);
  const auto *w = static_cast<const float *>(f.arguments[1]);
  auto *y = static_cast<float *>(f.outputs[0]);
  const int64_t n = f.elements(f.call.outputs[0]);
  return enqueue(stream, [=] {
    for (int64_t i = 0; i < n; ++i)
      y[i] = x[i] + w[i % 4];
  });
}

class FakeDevice : public testing::Test {
protected:
  FakeDevice() {
    fake_cuda::reset();
    provider_.ops = {{"aten::neg", negate}, {"aten::add", addRows}};
    SamplePlan sample = samplePlan();
    sample.plan.target = DeviceKind::Cuda;
    plan_ = std::make_unique<Plan>(*Plan::fromMemory(sample.plan, sample.weights));
  }
  ~FakeDevice() override { fake_cuda::reset(); }

  Result<Engine> createEngine() {
    EngineOptions options;
    options.provider = &provider_;
    return Engine::create(*plan_, options);
  }

  /// Runs "main" on one row in host memory.
  static Result<std::vector<float>> runMain(Context &context, std::vector<float> x) {
    const std::vector<int64_t> sizes = {1, 4};
    std::vector<float> y(4);
    const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
    const TensorView out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
    CGC_TRY(context.run("main", {&in, 1}, {&out, 1}));
    return y;
  }

  /// Enqueues "main" on one row in device memory.
  static Status enqueueMain(Context &context, const DeviceFloats &x, const DeviceFloats &y,
                            cudaStream_t stream) {
    const std::vector<int64_t> sizes = {1, 4};
    const TensorView in{x.data(), DType::F32, DeviceKind::Cuda, sizes, {}};
    const TensorView out{y.data(), DType::F32, DeviceKind::Cuda, sizes, {}};
    return context.run("main", {&in, 1}, {&out, 1}, stream);
  }

  FakeProvider provider_;
  std::unique_ptr<Plan> plan_;
};

} // namespace cgc::test

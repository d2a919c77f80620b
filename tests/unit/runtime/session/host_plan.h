// A plan that calls a function of the host, and that function.
#pragma once

#include "tests/unit/runtime/session/served_plan.h"

namespace cgc::test {

/// y = f(f(-x) + w) for x of f32[2,4], where f is the host's "visual.gate.forward": it takes the
/// negated input and gives two tensors, of which the second is not read.
inline SamplePlan hostPlan() {
  SamplePlan sample = servedPlan();
  Bucket bucket = sumBucket({2, 4}, 0);
  const auto arena = [](uint64_t offset) {
    return dense(BufferKind::Arena, 0, offset, DType::F32, {2, 4});
  };
  bucket.arenaBytes = 5 * kBufferAlignment;
  bucket.tensors = {dense(BufferKind::Input, 0, 0, DType::F32, {2, 4}),
                    arena(0),
                    dense(BufferKind::Weight, 0, 0, DType::F32, {4}),
                    arena(kBufferAlignment),
                    dense(BufferKind::Output, 0, 0, DType::F32, {2, 4}),
                    arena(2 * kBufferAlignment),
                    arena(3 * kBufferAlignment),
                    arena(4 * kBufferAlignment)};
  const LaunchRecord neg = bucket.records[0];
  AtenCall add = std::get<AtenCall>(bucket.records[1].op);
  add.args[0] = id(5);
  bucket.records = {neg,
                    {HostCall{"visual.gate", "forward", {id(1)}, {id(5), id(6)}}, LocationId(0)},
                    {add, LocationId(1)},
                    {HostCall{"visual.gate", "forward", {id(3)}, {id(4), id(7)}}, LocationId(1)}};
  sample.plan.entries = {{.name = "gated", .buckets = {bucket}}, sample.plan.entries[0]};
  return sample;
}

/// A host function that doubles negative numbers, as data-dependent code does, and copies its input
/// to its second output.
inline Status gate(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                   void *stream) {
  const auto *x = static_cast<const float *>(inputs[0].data);
  auto *y = static_cast<float *>(outputs[0].data), *copy = static_cast<float *>(outputs[1].data);
  return doWork(stream, [=] {
    for (int i = 0; i < 8; ++i) {
      y[i] = x[i] < 0 ? 2 * x[i] : x[i];
      copy[i] = x[i];
    }
  });
}
/// What hostPlan() computes for x = first, first + 1, ….
inline std::vector<float> gated(float first) {
  const auto f = [](float x) { return x < 0 ? 2 * x : x; };
  std::vector<float> y;
  for (int i = 0; i < 8; ++i)
    y.push_back(f(f(-(first + float(i))) + float(1 + i % 4)));
  return y;
}

} // namespace cgc::test

// A plan with several groups of buckets, and a fixture that serves it.
#pragma once

#include "runtime/session/session.h"
#include "tests/test_device/test_device.h"
#include "tests/unit/runtime/fake_provider.h"
#include "tests/unit/runtime/sample_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>

namespace cgc::test {

/// A bucket that computes y = -x + w, where y and x are f32 of `sizes`, of which dimension
/// `batchDim` is the batch.
inline Bucket sumBucket(std::vector<int64_t> sizes, int32_t batchDim) {
  Bucket bucket;
  const int64_t batch = sizes[batchDim];
  const uint64_t bytes = *tensorBytes(DType::F32, sizes),
                 step = (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  bucket.inputs = {{.name = "x", .dtype = DType::F32, .sizes = sizes, .batchDim = batchDim}};
  bucket.outputs = {{.name = "y", .dtype = DType::F32, .sizes = sizes, .batchDim = batchDim}};
  bucket.expectedMicros = 10 + double(batch);
  bucket.arenaBytes = 2 * step;
  bucket.tensors = {dense(BufferKind::Input, 0, 0, DType::F32, sizes),
                    dense(BufferKind::Arena, 0, 0, DType::F32, sizes),
                    dense(BufferKind::Weight, 0, 0, DType::F32, {4}),
                    dense(BufferKind::Arena, 0, step, DType::F32, sizes),
                    dense(BufferKind::Output, 0, 0, DType::F32, sizes)};
  AtenCall neg{.op = "aten::neg", .overload = "out", .args = {id(0)}, .outputs = {id(1)}};
  neg.writesOut = true;
  const AtenCall add{.op = "aten::add",
                     .overload = "Tensor",
                     .args = {id(1), id(2), int64_t(1)},
                     .outputs = {id(3)}};
  bucket.records = {{neg, LocationId(0)}, {add, LocationId(1)}, {Memcpy{id(3), id(4)}}};
  return bucket;
}

/// A plan with four entries that compute y = -x + w with weights `w`:
///  - "rows": x is [N,4] with N in 1, 4, 16, 64, or [N,2,4] with N in 2, 8.
///  - "columns": x is [3,N,4] with N in 2, 5.
///  - "ids": also has an input of indices, [N,3], each below 100; N in 1, 4.
///  - "mixed": x is [N,4] with N in 2, 3, and its rows depend on each other.
inline SamplePlan servedPlan(std::vector<float> w = {1, 2, 3, 4}) {
  SamplePlan sample;
  PlanData &plan = sample.plan;
  plan.target = kTestDevice;
  plan.producer = "test";
  plan.locations = {{"model.py", 12, "visual.ln"}, {"model.py", 13, ""}};
  plan.weights = {{.name = "w", .dtype = DType::F32, .sizes = {4}}};
  sample.weights = {floatBytes(w)};
  Entry rows{.name = "rows", .buckets = {}, .rows = {.independent = true}};
  for (const int64_t n : {1, 4, 16, 64})
    rows.buckets.push_back(sumBucket({n, 4}, 0));
  Entry wide{.name = "wide", .buckets = {}, .rows = {.independent = true}};
  for (const int64_t n : {2, 8})
    for (const int64_t width : {2, 3})
      wide.buckets.push_back(sumBucket({n, width, 4}, 0));
  Entry columns{.name = "columns", .buckets = {}, .rows = {.independent = true}};
  for (const int64_t n : {2, 5})
    columns.buckets.push_back(sumBucket({3, n, 4}, 1));
  Entry ids{.name = "ids", .buckets = {}, .rows = {.independent = true}};
  for (const int64_t n : {1, 4}) {
    Bucket bucket = sumBucket({n, 4}, 0);
    bucket.inputs.push_back({.name = "ids", .dtype = DType::I64, .sizes = {n, 3}});
    bucket.inputs.back().batchDim = 0;
    bucket.inputs.back().indexBounds = {{.end = 100, .sizes = {n, 3}, .strides = {3, 1}}};
    ids.buckets.push_back(bucket);
  }
  Entry mixed{.name = "mixed", .buckets = {}};
  mixed.rows = {.independent = false,
                .op = "aten.matmul",
                .reason = "it combines different rows",
                .location = LocationId(1)};
  for (const int64_t n : {2, 3})
    mixed.buckets.push_back(sumBucket({n, 4}, 0));
  plan.entries = {rows, wide, columns, ids, mixed};
  return sample;
}

/// A plan whose entry "seed" gives the seed of the context that runs it.
inline SamplePlan seedPlan() {
  SamplePlan sample;
  sample.plan.target = kTestDevice;
  sample.plan.producer = "test";
  sample.plan.states = {{"random:seed", StateRole::Control, DType::I64, {}}};
  Bucket bucket;
  bucket.inputs = {{.name = "x", .dtype = DType::F32, .sizes = {1}}};
  bucket.outputs = {{.name = "seed", .dtype = DType::I64, .sizes = {}}};
  bucket.tensors = {dense(BufferKind::State, 0, 0, DType::I64, {}),
                    dense(BufferKind::Output, 0, 0, DType::I64, {})};
  bucket.records = {{Memcpy{id(0), id(1)}}};
  sample.plan.entries = {{.name = "seed", .buckets = {bucket}}};
  return sample;
}

inline std::shared_ptr<const Plan> toPlan(const SamplePlan &sample) {
  auto plan = Plan::fromMemory(sample.plan, sample.weights);
  EXPECT_TRUE(plan.isOk()) << plan.status().message();
  return std::make_shared<const Plan>(*std::move(plan));
}

/// Serves servedPlan() with a provider whose ops run on the test's device.
class ServedPlanTest : public testing::Test {
protected:
  ServedPlanTest() {
    provider_.ops["aten::neg"] = [this](const FakeCall &f, void *stream) {
      const auto *x = static_cast<const float *>(f.arguments[0]);
      auto *y = static_cast<float *>(f.outputs[0]);
      const int64_t n = f.elements(f.call.outputs[0]);
      return doWork(stream, [this, x, y, n] {
        std::transform(x, x + n, y, std::negate<>());
        if (onNeg)
          onNeg({x, x + n});
      });
    };
    provider_.ops["aten::add"] = [](const FakeCall &f, void *stream) {
      const auto *x = static_cast<const float *>(f.arguments[0]);
      const auto *w = static_cast<const float *>(f.arguments[1]);
      auto *y = static_cast<float *>(f.outputs[0]);
      const int64_t n = f.elements(f.call.outputs[0]);
      return doWork(stream, [=] {
        for (int64_t i = 0; i < n; ++i)
          y[i] = x[i] + w[i % 4];
      });
    };
  }

  Session createSession(const std::shared_ptr<const Plan> &plan, SessionOptions options = {}) {
    options.engine.provider = &provider_;
    auto session = Session::create(plan, options);
    EXPECT_TRUE(session.isOk()) << session.status().message();
    return *std::move(session);
  }

  /// The results of `entry` for x = first, first + 1, …, of `sizes`, in host memory.
  static Result<std::vector<float>> run(Session &session, std::string_view entry,
                                        std::vector<int64_t> sizes, float first = 0) {
    std::vector<float> x(*tensorBytes(DType::F32, sizes) / sizeof(float)), y(x.size(), -1e9f);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = first + float(i);
    const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
    const TensorView out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
    CGC_TRY(session.run(entry, {&in, 1}, {&out, 1}));
    return y;
  }
  /// What run() computes with weights `w`.
  static std::vector<float> expected(const std::vector<int64_t> &sizes, float first = 0,
                                     const std::vector<float> &w = {1, 2, 3, 4}) {
    std::vector<float> y(*tensorBytes(DType::F32, sizes) / sizeof(float));
    for (size_t i = 0; i < y.size(); ++i)
      y[i] = w[i % 4] - (first + float(i));
    return y;
  }

  FakeProvider provider_;
  /// Called with the input of each "aten::neg" that runs.
  std::function<void(std::vector<float>)> onNeg;
};

} // namespace cgc::test

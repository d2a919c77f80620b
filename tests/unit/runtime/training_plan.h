// A training plan for tests that need neither LibTorch nor a compiler: states of every role,
// written by ops of FakeProvider.
#pragma once

#include "runtime/plan/plan_file.h"
#include "tests/temp_folder.h"
#include "tests/unit/runtime/fake_provider.h"
#include "tests/unit/runtime/sample_plan.h"

#include <array>
#include <cmath>

namespace cgc::test {

/// The elements of a parameter of trainingPlan().
inline constexpr int64_t kTrained = 4;

/// `step` and `evaluate` of the loss sum((w - x)²) / 2 with x of 4 elements: SGD with a momentum of
/// 0.5, w -= lr * m, where m = 0.5 m + (w - x). `seen` adds x up, and `step` counts. w begins as
/// {1, 2, 3, 4} and lr as 0.5; both are only first values. m has the name "w:exp_avg".
inline SamplePlan trainingPlan(DeviceKind target) {
  enum : uint32_t { kW, kSeen, kM, kStep, kLr };
  SamplePlan sample;
  PlanData &plan = sample.plan;
  plan.target = target;
  plan.producer = "test";
  plan.weights = {{.name = "w", .dtype = DType::F32, .sizes = {kTrained}},
                  {.name = "lr", .dtype = DType::F32, .sizes = {1}}};
  sample.weights = {floatBytes({1, 2, 3, 4}), floatBytes({0.5})};
  plan.states = {{"w", StateRole::Parameter, DType::F32, {kTrained}, 0},
                 {"seen", StateRole::Buffer, DType::F32, {kTrained}},
                 {"w:exp_avg", StateRole::Optimizer, DType::F32, {kTrained}},
                 {"optimizer:step", StateRole::Control, DType::I64, {}},
                 {"optimizer:lr", StateRole::Control, DType::F32, {1}, 1}};

  Bucket evaluate;
  evaluate.inputs = {{.name = "x", .dtype = DType::F32, .sizes = {kTrained}}};
  evaluate.outputs = {{.name = "loss", .dtype = DType::F32, .sizes = {}}};
  evaluate.arenaBytes = 256;
  const auto all = [](BufferKind buffer, uint32_t index) {
    return dense(buffer, index, 0, DType::F32, {kTrained});
  };
  evaluate.tensors = {all(BufferKind::Input, 0), all(BufferKind::Arena, 0),
                      dense(BufferKind::Output, 0, 0, DType::F32, {}), all(BufferKind::State, kW)};
  const auto call = [](std::string op, std::vector<AtenArg> args, TensorId output) {
    AtenCall aten{.op = std::move(op), .overload = "out", .args = std::move(args)};
    aten.outputs = {output};
    aten.writesOut = true;
    return LaunchRecord{aten};
  };
  evaluate.records = {call("aten::difference", {id(3), id(0)}, id(1)),
                      call("aten::loss", {id(1)}, id(2))};

  Bucket step = evaluate;
  step.tensors.push_back(all(BufferKind::State, kSeen));                      // 4
  step.tensors.push_back(all(BufferKind::State, kM));                         // 5
  step.tensors.push_back(dense(BufferKind::State, kStep, 0, DType::I64, {})); // 6
  step.tensors.push_back(dense(BufferKind::State, kLr, 0, DType::F32, {1}));  // 7
  step.records.push_back(call("aten::accumulate", {id(4), id(0)}, id(4)));
  step.records.push_back(call("aten::momentum", {id(5), id(1)}, id(5)));
  step.records.push_back(call("aten::descend", {id(3), id(5), id(7)}, id(3)));
  step.records.push_back(call("aten::count", {id(6)}, id(6)));
  plan.entries = {{.name = "step", .buckets = {step}}, {.name = "evaluate", .buckets = {evaluate}}};
  return sample;
}

/// Enqueues host code on a stream, or runs it if the stream is null.
using EnqueueHost = std::function<Status(void *stream, std::function<void()> work)>;
inline Status runAtOnce(void *, const std::function<void()> &work) {
  work();
  return Status::ok();
}

/// The ops of trainingPlan().
inline std::map<std::string, FakeOp> trainingOps(const EnqueueHost &enqueue = runAtOnce) {
  const auto floats = [](void *data) { return static_cast<float *>(data); };
  const auto op = [enqueue](auto body) -> FakeOp {
    return [=](const FakeCall &f, void *stream) {
      std::array<void *, 3> args{};
      std::ranges::copy(f.arguments, args.begin());
      void *const out = f.outputs[0];
      return enqueue(stream, [=] { body(args, out); });
    };
  };
  using Args = std::array<void *, 3>;
  const auto elementwise = [op, floats](auto body) {
    return op([=](const Args &args, void *out) {
      for (int64_t i = 0; i < kTrained; ++i)
        floats(out)[i] = body(floats(args[0])[i], floats(args[1])[i], floats(args[2]));
    });
  };
  return {
      {"aten::difference", elementwise([](float w, float x, auto) { return w - x; })},
      {"aten::accumulate", elementwise([](float sum, float x, auto) { return sum + x; })},
      {"aten::momentum", elementwise([](float m, float g, auto) { return 0.5F * m + g; })},
      {"aten::descend", elementwise([](float w, float m, const float *lr) { return w - *lr * m; })},
      {"aten::loss", op([=](const Args &args, void *out) {
         float sum = 0;
         for (int64_t i = 0; i < kTrained; ++i)
           sum += floats(args[0])[i] * floats(args[0])[i];
         *floats(out) = sum / 2;
       })},
      {"aten::count", op([=](const Args &args, void *out) {
         *static_cast<int64_t *>(out) = *static_cast<int64_t *>(args[0]) + 1;
       })}};
}

/// What the steps compute, on the host in the same order, hence with equal bits.
struct TrainedModel {
  std::vector<float> w = {1, 2, 3, 4}, m = {0, 0, 0, 0}, seen = {0, 0, 0, 0};
  float lr = 0.5;
  int64_t steps = 0;

  /// Makes a step and returns its loss.
  float step(const std::vector<float> &x) {
    const float loss = evaluate(x);
    for (size_t i = 0; i < w.size(); ++i) {
      seen[i] = seen[i] + x[i];
      m[i] = 0.5F * m[i] + (w[i] - x[i]);
      w[i] = w[i] - lr * m[i];
    }
    ++steps;
    return loss;
  }
  float evaluate(const std::vector<float> &x) const {
    float sum = 0;
    for (size_t i = 0; i < w.size(); ++i)
      sum += (w[i] - x[i]) * (w[i] - x[i]);
    return sum / 2;
  }
};

/// A batch for step `i`.
inline std::vector<float> batch(int i) {
  return {float(i), 0.25F * float(i), -1, std::sqrt(float(i + 1))};
}

/// The plan, written to a file and loaded from it.
inline Result<Plan> throughAFile(const SamplePlan &sample) {
  const TempFolder folder;
  CGC_TRY(writePlan(sample.plan, sample.weightSpans(), folder / "p"));
  return Plan::load(folder / "p");
}

} // namespace cgc::test

// The fixture of tests of accumulation: the plan of training_plan.h with micro-batches.
#pragma once

#include "tests/unit/runtime/train/trained_plan.h"

namespace cgc::test {

/// trainingPlan() and entries whose micro-batches have the loss of `step`. `update` makes the step
/// of the mean gradient.
inline SamplePlan accumulatingPlan(DeviceKind target) {
  enum : uint32_t { kW, kSeen, kM, kStep, kLr, kGradient, kCount, kLossSum };
  SamplePlan sample = trainingPlan(target);
  PlanData &plan = sample.plan;
  plan.states.push_back({"w:gradient", StateRole::Gradient, DType::F32, {kTrained}});
  plan.states.push_back({kMicroBatchesState, StateRole::Control, DType::I64, {}});
  plan.states.push_back({kLossSumState, StateRole::Control, DType::F32, {}});
  const auto state = [](uint32_t index, DType dtype, std::vector<int64_t> sizes) {
    return dense(BufferKind::State, index, 0, dtype, std::move(sizes));
  };
  const auto call = [](std::string op, std::vector<AtenArg> args, TensorId output) {
    AtenCall aten{.op = std::move(op), .overload = "out", .args = std::move(args)};
    aten.outputs = {output};
    aten.writesOut = true;
    return LaunchRecord{aten};
  };
  Bucket first = plan.entries[1].buckets[0];                  // That of `evaluate`: tensors 0 to 3.
  first.tensors.push_back(state(kSeen, DType::F32, {4}));     // 4
  first.tensors.push_back(state(kGradient, DType::F32, {4})); // 5
  first.tensors.push_back(state(kCount, DType::I64, {}));     // 6
  first.tensors.push_back(state(kLossSum, DType::F32, {}));   // 7
  first.records.push_back(call("aten::accumulate", {id(4), id(0)}, id(4)));
  Bucket next = first;
  first.records.push_back(call("aten::difference", {id(3), id(0)}, id(5)));
  first.records.push_back(call("aten::zero", {}, id(6)));
  first.records.push_back(call("aten::loss", {id(1)}, id(7)));
  next.records.push_back(call("aten::accumulate", {id(5), id(1)}, id(5)));
  next.records.push_back(call("aten::add_loss", {id(7), id(1)}, id(7)));
  for (Bucket *bucket : {&first, &next})
    bucket->records.push_back(call("aten::count", {id(6)}, id(6)));

  Bucket update;
  update.outputs = {{.name = "loss", .dtype = DType::F32, .sizes = {}}};
  update.arenaBytes = 256;
  update.tensors = {dense(BufferKind::Output, 0, 0, DType::F32, {}),
                    dense(BufferKind::Arena, 0, 0, DType::F32, {4}),
                    state(kW, DType::F32, {4}),
                    state(kM, DType::F32, {4}),
                    state(kStep, DType::I64, {}),
                    state(kLr, DType::F32, {1}),
                    state(kGradient, DType::F32, {4}),
                    state(kCount, DType::I64, {}),
                    state(kLossSum, DType::F32, {})};
  update.records = {call("aten::mean", {id(8), id(7)}, id(0)),
                    call("aten::means", {id(6), id(7)}, id(1)),
                    call("aten::momentum", {id(3), id(1)}, id(3)),
                    call("aten::descend", {id(2), id(3), id(5)}, id(2)),
                    call("aten::count", {id(4)}, id(4)),
                    call("aten::zero", {}, id(7))};
  plan.entries.push_back({.name = kFirstGradientEntry, .buckets = {first}});
  plan.entries.push_back({.name = kNextGradientEntry, .buckets = {next}});
  plan.entries.push_back({.name = kUpdateEntry, .buckets = {update}});
  return sample;
}

/// The ops that accumulatingPlan() adds.
inline std::map<std::string, FakeOp> accumulationOps(const EnqueueHost &enqueue) {
  const auto op = [enqueue](auto body) -> FakeOp {
    return [=](const FakeCall &f, void *stream) {
      std::array<void *, 2> args{};
      std::ranges::copy(f.arguments, args.begin());
      void *const out = f.outputs[0];
      return enqueue(stream, [=] { body(args[0], args[1], out); });
    };
  };
  const auto means = [op](int64_t elements) {
    return op([=](void *sums, void *count, void *out) {
      for (int64_t i = 0; i < elements; ++i)
        static_cast<float *>(out)[i] =
            static_cast<float *>(sums)[i] / static_cast<float>(*static_cast<int64_t *>(count));
    });
  };
  return {{"aten::mean", means(1)},
          {"aten::means", means(kTrained)},
          {"aten::zero", op([](void *, void *, void *out) { *static_cast<int64_t *>(out) = 0; })},
          {"aten::add_loss", op([](void *sum, void *difference, void *out) {
             float loss = 0;
             for (int64_t i = 0; i < kTrained; ++i)
               loss += static_cast<float *>(difference)[i] * static_cast<float *>(difference)[i];
             *static_cast<float *>(out) = *static_cast<float *>(sum) + loss / 2;
           })}};
}

/// TrainedModel with micro-batches.
struct AccumulatedModel : TrainedModel {
  std::vector<float> gradient = {0, 0, 0, 0};
  float lossSum = 0;
  int64_t microBatches = 0;

  void accumulate(const std::vector<float> &x) {
    const bool isFirst = microBatches++ == 0;
    lossSum = isFirst ? evaluate(x) : lossSum + evaluate(x);
    for (size_t i = 0; i < w.size(); ++i) {
      seen[i] = seen[i] + x[i];
      gradient[i] = isFirst ? w[i] - x[i] : gradient[i] + (w[i] - x[i]);
    }
  }
  /// Makes the step and returns the mean loss.
  float update() {
    const auto count = static_cast<float>(microBatches);
    for (size_t i = 0; i < w.size(); ++i) {
      m[i] = 0.5F * m[i] + gradient[i] / count;
      w[i] = w[i] - lr * m[i];
    }
    ++steps;
    microBatches = 0;
    return lossSum / count;
  }
};

class AccumulatedPlan : public TrainedPlan {
protected:
  AccumulatedPlan() {
    provider_.ops.merge(accumulationOps(doWork));
    plan_ = planOf(accumulatingPlan(kTestDevice));
  }

  static Status accumulate(Trainer &trainer, int index) {
    std::vector<float> x = batch(index);
    const TensorView view = floatView(x, kParameterSizes);
    return trainer.accumulate({&view, 1});
  }
  static void expectAllStates(Trainer &trainer, const AccumulatedModel &model) {
    expectStates(trainer, model);
    EXPECT_EQ(trainer.microBatches(), uint64_t(model.microBatches));
    if (model.microBatches != 0) {
      EXPECT_EQ(read(trainer, "w:gradient"), model.gradient);
    }
  }
};

} // namespace cgc::test

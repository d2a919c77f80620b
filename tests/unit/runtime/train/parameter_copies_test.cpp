// 16-bit copies of parameters: whatever changes a parameter refreshes them, and checkpoints leave
// them out.
#include "runtime/train/safetensors.h"
#include "tests/unit/runtime/train/trained_plan.h"

#include <bit>

namespace cgc::test {
namespace {

/// The upper half of a float.
uint16_t upperHalf(float value) {
  return uint16_t(std::bit_cast<uint32_t>(value) >> 16);
}

/// trainingPlan() with a copy of w, the upper halves of its elements, which only `refresh` writes.
SamplePlan planWithCopy() {
  SamplePlan sample = trainingPlan(kTestDevice);
  sample.plan.states.push_back({"w:bf16", StateRole::Copy, DType::BF16, {kTrained}});
  Bucket refresh;
  refresh.outputs = {{.name = "step", .dtype = DType::I64, .sizes = {}}};
  refresh.tensors = {dense(BufferKind::State, 0, 0, DType::F32, {kTrained}),
                     dense(BufferKind::State, 5, 0, DType::BF16, {kTrained}),
                     dense(BufferKind::State, 3, 0, DType::I64, {}),
                     dense(BufferKind::Output, 0, 0, DType::I64, {})};
  AtenCall halves{.op = "aten::halves", .overload = "out", .args = {id(0)}};
  halves.outputs = {id(1)};
  halves.writesOut = true;
  refresh.records = {{halves}, {Memcpy{id(2), id(3)}}};
  sample.plan.entries.push_back({.name = "refresh", .buckets = {refresh}});
  return sample;
}

class CopiedPlan : public TrainedPlan {
protected:
  CopiedPlan() {
    provider_.ops["aten::halves"] = [](const FakeCall &f, void *stream) {
      const auto *w = static_cast<const float *>(f.arguments[0]);
      auto *const copy = static_cast<uint16_t *>(f.outputs[0]);
      return doWork(stream, [=] {
        for (int64_t i = 0; i < kTrained; ++i)
          copy[i] = upperHalf(w[i]);
      });
    };
    plan_ = planOf(planWithCopy());
  }

  static void expectFreshCopy(Trainer &trainer) {
    std::vector<uint16_t> copy(kTrained), expected;
    const Status status =
        trainer.read("w:bf16", {copy.data(), DType::BF16, DeviceKind::Cpu, kParameterSizes, {}});
    EXPECT_TRUE(status.isOk()) << status.message();
    for (const float w : read(trainer, "w"))
      expected.push_back(upperHalf(w));
    EXPECT_EQ(copy, expected);
  }
};

TEST_F(CopiedPlan, WhateverChangesAParameterRefreshesItsCopy) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
  expectFreshCopy(*trainer);
  std::vector<float> w = {9, 8, 7, 6};
  ASSERT_TRUE(trainer->write("w", floatView(w, kParameterSizes)).isOk());
  expectFreshCopy(*trainer);
  ASSERT_TRUE(train(*trainer, 0, 3).isOk());
  ASSERT_TRUE(trainer->save(folder_ / "run").isOk());
  ASSERT_TRUE(trainer->reset().isOk());
  EXPECT_EQ(read(*trainer, "w"), TrainedModel().w);
  expectFreshCopy(*trainer);

  Result<Trainer> other = create();
  ASSERT_TRUE(other->load(folder_ / "run").isOk());
  EXPECT_NE(read(*other, "w"), TrainedModel().w);
  expectFreshCopy(*other);
  ASSERT_TRUE(trainer->loadModel(folder_ / "run/model.safetensors").isOk());
  EXPECT_EQ(read(*trainer, "w"), read(*other, "w"));
  expectFreshCopy(*trainer);
}

TEST_F(CopiedPlan, CheckpointsHaveNoCopies) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  ASSERT_TRUE(trainer->save(folder_ / "run").isOk());
  EXPECT_EQ(SafetensorsFile::open(folder_ / "run/model.safetensors")->tensors().size(), 2u);
  EXPECT_EQ(SafetensorsFile::open(folder_ / "run/optimizer.safetensors")->tensors().size(), 3u);
  // The same states, but for the copies.
  Result<Trainer> without = create(planOf(trainingPlan(kTestDevice)));
  EXPECT_TRUE(without->load(folder_ / "run", {.anyPlan = true}).isOk());
}

} // namespace
} // namespace cgc::test

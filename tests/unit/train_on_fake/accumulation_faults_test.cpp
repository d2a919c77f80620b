// Accumulation on the fake GPU: micro-batches that do not wait, and failures in the middle of a
// step.
#include "tests/fake_cuda/failing_allocations.h"
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/unit/runtime/train/accumulated_plan.h"

#include <cuda_runtime_api.h>

namespace cgc::test {
namespace {

class AccumulationFaults : public AccumulatedPlan {
protected:
  AccumulationFaults() { fake_cuda::reset(); }
  ~AccumulationFaults() override { fake_cuda::reset(); }

  /// Saves the checkpoint "run" between two micro-batches.
  AccumulatedModel saveBetween(Trainer &trainer) {
    EXPECT_TRUE(accumulate(trainer, 0).isOk());
    EXPECT_TRUE(trainer.save(folder_ / "run").isOk());
    AccumulatedModel model;
    model.accumulate(batch(0));
    return model;
  }
  void expectLoaded(Trainer &trainer, const AccumulatedModel &model) {
    const auto loaded = trainer.load(folder_ / "run");
    ASSERT_TRUE(loaded.isOk()) << loaded.status().message();
    expectAllStates(trainer, model);
  }
};

TEST_F(AccumulationFaults, MicroBatchesDoNotWait) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
  void *pinned = nullptr; // A copy from other memory may wait.
  ASSERT_EQ(cudaMallocHost(&pinned, kTrained * sizeof(float)), cudaSuccess);
  std::fill_n(static_cast<float *>(pinned), kTrained, 2.0F);
  const TensorView x{pinned, DType::F32, DeviceKind::Cpu, kParameterSizes, {}};
  fake_cuda::clearCalls();
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(trainer->accumulate({&x, 1}).isOk());
    if (i % 2 == 1) {
      ASSERT_TRUE(trainer->update().isOk());
    }
  }
  EXPECT_EQ(fake_cuda::callCounts().waits, 0u);
  AccumulatedModel model;
  for (int i = 0; i < 6; ++i) {
    model.accumulate({2, 2, 2, 2});
    if (i % 2 == 1)
      model.update();
  }
  expectAllStates(*trainer, model);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

/// Stream and graph compute the same bits.
TEST_F(AccumulationFaults, StreamsAndGraphsAreBitEqual) {
  AccumulatedModel model;
  for (int i = 0; i < 5; ++i)
    model.accumulate(batch(i));
  for (const ExecutorKind executor : {ExecutorKind::Stream, ExecutorKind::Graph}) {
    TrainerOptions options;
    options.engine.executor = executor;
    Result<Trainer> trainer = create(options);
    ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
    for (int i = 0; i < 5; ++i)
      ASSERT_TRUE(accumulate(*trainer, i).isOk());
    expectAllStates(*trainer, model);
    ASSERT_TRUE(trainer->update().isOk());
    AccumulatedModel updated = model;
    updated.update();
    expectAllStates(*trainer, updated);
  }
}

TEST_F(AccumulationFaults, EveryCudaCallFailsOnce) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  const AccumulatedModel model = saveBetween(*trainer);
  const auto work = [&]() -> Status {
    CGC_TRY(accumulate(*trainer, 1));
    CGC_TRY(trainer->save(folder_ / "work"));
    CGC_TRY(trainer->update());
    CGC_TRY(accumulate(*trainer, 2));
    CGC_TRY(trainer->load(folder_ / "run").status());
    return trainer->poll().status();
  };
  ASSERT_TRUE(work().isOk());
  fake_cuda::clearCalls();
  ASSERT_TRUE(work().isOk());
  const size_t count = fake_cuda::calls().size();
  ASSERT_GE(count, 20u);
  for (size_t i = 0; i < count; ++i)
    for (const bool sticky : {false, true}) {
      SCOPED_TRACE(testing::Message() << "call " << i << " " << sticky);
      fake_cuda::failAnyCall(int(i + 1), cudaErrorIllegalAddress, sticky);
      (void)work();
      fake_cuda::reset();
      expectLoaded(*trainer, model);
    }
}

/// A failure breaks the trainer until load(), unless nothing was enqueued.
TEST_F(AccumulationFaults, EveryAllocationFailsOnce) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  const AccumulatedModel model = saveBetween(*trainer);
  std::vector<float> x = batch(1);
  const TensorView view = floatView(x, kParameterSizes);
  const std::string run = folder_ / "run", other = folder_ / "other";
  struct Part {
    const char *name;
    bool breaks;
    std::function<Status()> body;
  };
  const Part parts[] = {{"accumulate", true, [&] { return trainer->accumulate({&view, 1}); }},
                        {"update", true, [&] { return trainer->update(); }},
                        {"save", false, [&] { return trainer->save(other); }},
                        {"load", false, [&] { return trainer->load(run).status(); }}};
  for (const auto &[name, breaks, part] : parts) {
    bool isDone = false;
    long count = 0;
    for (; !isDone && count < 10000; ++count) {
      SCOPED_TRACE(testing::Message() << name << ", allocation " << count);
      allocationsLeft = count;
      const Status status = part();
      isDone = allocationsLeft >= 0;
      allocationsLeft = -1;
      if (!isDone && !status.isOk()) {
        EXPECT_EQ(status.code(), Code::OutOfMemory) << status.message();
        EXPECT_FALSE(breaks && trainer->update().isOk());
      }
      expectLoaded(*trainer, model);
    }
    EXPECT_TRUE(isDone);
    EXPECT_GT(count, 1) << name;
  }
}

} // namespace
} // namespace cgc::test

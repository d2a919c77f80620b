// Trainer on the fake GPU: steps that do not wait, and failures of the device and of memory, after
// which the states of a checkpoint are whole.
#include "tests/fake_cuda/failing_operator_new.h"
#include "tests/unit/runtime/train/trained_plan.h"

#include <cuda_runtime_api.h>

namespace cgc::test {
namespace {

using testing::HasSubstr;

class TrainerFaults : public TrainedPlan {
protected:
  TrainerFaults() { fake_cuda::reset(); }
  ~TrainerFaults() override { fake_cuda::reset(); }

  /// Saves the checkpoint "run" after two steps.
  TrainedModel saveTwoSteps(Trainer &trainer) {
    EXPECT_TRUE(train(trainer, 0, 2).isOk());
    EXPECT_TRUE(trainer.save(folder_ / "run").isOk());
    TrainedModel model;
    model.step(batch(0));
    model.step(batch(1));
    return model;
  }
};

TEST_F(TrainerFaults, StepsAndControlValuesDoNotWait) {
  Result<Trainer> trainer = create({.stepsInFlight = 8});
  ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
  // Pinned memory, because a copy from other memory may wait.
  void *pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, kTrained * sizeof(float)), cudaSuccess);
  std::fill_n(static_cast<float *>(pinned), kTrained, 2.0F);
  const TensorView x{pinned, DType::F32, DeviceKind::Cpu, kParameterSizes, {}};
  ASSERT_TRUE(trainer->set("lr", 0.5).isOk());
  ASSERT_TRUE(trainer->wait().isOk());
  fake_cuda::clearCalls();
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(trainer->set("lr", 0.25).isOk());
    ASSERT_TRUE(trainer->step({&x, 1}).isOk());
  }
  EXPECT_EQ(fake_cuda::callCounts().waits, 0u);
  ASSERT_TRUE(trainer->step({&x, 1}).isOk()); // More than are allowed.
  EXPECT_EQ(trainer->stepNumber(), 9u);
  TrainedModel model;
  model.lr = 0.25;
  for (int i = 0; i < 9; ++i)
    model.step({2, 2, 2, 2});
  expectStates(*trainer, model);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

/// Batches on the host go through device memory, beside the step before.
TEST_F(TrainerFaults, CopiesTheNextBatchBesideAStep) {
  for (const uint64_t aheadBytes : {uint64_t(1), uint64_t(kTrained) * sizeof(float) + 1}) {
    Result<Trainer> trainer =
        create({.context = {.copyAheadBytes = aheadBytes}, .stepsInFlight = 8});
    ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
    const bool isAhead = aheadBytes == 1;
    // A batch for each step, which stays as it is until the steps are done.
    std::vector<float *> batches(8);
    TrainedModel model;
    fake_cuda::clearCalls();
    for (int i = 0; i < 8; ++i) {
      ASSERT_EQ(cudaMallocHost(reinterpret_cast<void **>(&batches[i]), kTrained * sizeof(float)),
                cudaSuccess);
      std::ranges::copy(batch(i), batches[i]);
      const TensorView x{batches[i], DType::F32, DeviceKind::Cpu, kParameterSizes, {}};
      ASSERT_TRUE(trainer->step({&x, 1}).isOk());
      model.step(batch(i));
    }
    EXPECT_EQ(fake_cuda::callCounts().waits, 0u);
    // From the host on a stream of their own, then on the device.
    EXPECT_EQ(std::ranges::count(fake_cuda::calls(), "cudaMemcpyAsync", &fake_cuda::Call::function),
              8 * (isAhead ? 3 : 2)); // One is the loss.
    ASSERT_TRUE(trainer->wait().isOk());
    expectStates(*trainer, model);
    // Steps that cannot be enqueued, and one after that. The stream of the copies, for which no
    // caller can wait, does not read a batch after its step has failed.
    for (const char *function : {"cudaEventRecord", "cudaGraphLaunch"}) {
      fake_cuda::failCall(function, 1, cudaErrorMemoryAllocation);
      const TensorView failing{batches.back(), DType::F32, DeviceKind::Cpu, kParameterSizes, {}};
      EXPECT_FALSE(trainer->step({&failing, 1}).isOk());
      if (isAhead) {
        EXPECT_EQ(cudaFreeHost(batches.back()), cudaSuccess);
        batches.pop_back();
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << function;
      }
      ASSERT_TRUE(trainer->reset().isOk());
    }
    ASSERT_TRUE(step(*trainer, batch(0)).isOk());
    model = {};
    model.step(batch(0));
    expectStates(*trainer, model);
    for (float *const memory : batches)
      EXPECT_EQ(cudaFreeHost(memory), cudaSuccess);
  }
}

/// The pinned memory of one control value serves larger ones, too.
TEST_F(TrainerFaults, ControlValuesOfAnySizeReuseMemory) {
  SamplePlan sample = trainingPlan(kTestDevice);
  sample.plan.weights[1].sizes = sample.plan.states[4].sizes = {8};
  sample.weights[1] = floatBytes(std::vector<float>(8, 0.5F));
  Result<Trainer> trainer = create(planOf(sample), {.stepsInFlight = 4});
  ASSERT_TRUE(trainer.isOk()) << trainer.status().message();
  fake_cuda::clearCalls();
  ASSERT_TRUE(trainer->set("step", 1).isOk()); // The smallest first.
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(trainer->set("lr", 0.25).isOk());
  const auto calls = fake_cuda::calls();
  EXPECT_LE(std::ranges::count(calls, "cudaMallocHost", &fake_cuda::Call::function), 4);
}

TEST_F(TrainerFaults, StepsOnTheCallersStreamsFollowEachOther) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  TrainedModel model;
  std::vector<cudaStream_t> streams(3);
  for (cudaStream_t &stream : streams)
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  std::vector<double> losses, polled;
  // A result is there when the step has ended on the caller's stream, not before.
  const auto poll = [&] {
    const auto results = trainer->poll();
    ASSERT_TRUE(results.isOk());
    for (const StepResult &result : *results)
      polled.push_back(result.loss);
  };
  for (int i = 0; i < 9; ++i) {
    std::vector<float> x = batch(i);
    const TensorView view = floatView(x, kParameterSizes);
    ASSERT_TRUE(trainer->step({&view, 1}, streams[i % 3]).isOk());
    losses.push_back(model.step(batch(i)));
    poll();
  }
  ASSERT_TRUE(trainer->wait().isOk());
  poll();
  EXPECT_EQ(polled, losses);
  expectStates(*trainer, model);
  // A capture could not read the loss back.
  ASSERT_EQ(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal), cudaSuccess);
  std::vector<float> x = batch(0);
  const TensorView view = floatView(x, kParameterSizes);
  const Status status = trainer->step({&view, 1}, streams[0]);
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_THAT(status.message(), HasSubstr("is being captured"));
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(streams[0], &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  expectStates(*trainer, model);
  for (cudaStream_t stream : streams)
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(TrainerFaults, NothingIsLeftBehind) {
  {
    Result<Trainer> trainer = create({.readOutputs = true});
    ASSERT_TRUE(trainer.isOk());
    ASSERT_TRUE(trainer->set("lr", 1).isOk());
    ASSERT_TRUE(step(*trainer, batch(0)).isOk());
    Trainer moved = *std::move(trainer);
    ASSERT_TRUE(step(moved, batch(0)).isOk());
  }
  EXPECT_EQ(fake_cuda::allocatedBytes(), 0u);
  EXPECT_EQ(fake_cuda::liveHandles(), 0u);
}

TEST_F(TrainerFaults, AfterAStickyFaultEveryCallFailsUntilLoad) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  TrainedModel model = saveTwoSteps(*trainer);
  fake_cuda::failCall("cudaGraphLaunch", 1, cudaErrorIllegalAddress, /*sticky=*/true);
  const Status fault = step(*trainer, batch(2));
  EXPECT_EQ(fault.code(), Code::Device);
  std::vector<float> w(kTrained);
  const TensorView view = floatView(w, kParameterSizes);
  EXPECT_EQ(step(*trainer, batch(2)).message(), fault.message());
  EXPECT_EQ(trainer->poll().status().message(), fault.message());
  EXPECT_EQ(trainer->wait().message(), fault.message());
  EXPECT_EQ(trainer->set("lr", 1).message(), fault.message());
  EXPECT_EQ(trainer->read("w", view).message(), fault.message());
  EXPECT_EQ(trainer->write("w", view).message(), fault.message());
  EXPECT_EQ(trainer->save(folder_ / "other").message(), fault.message());
  EXPECT_FALSE(trainer->load(folder_ / "run").isOk()); // The driver still refuses the device.
  EXPECT_FALSE(step(*trainer, batch(2)).isOk());
  EXPECT_EQ(trainer->memory().total(), 0u);
  fake_cuda::reset();
  const auto info = trainer->load(folder_ / "run");
  ASSERT_TRUE(info.isOk()) << info.status().message();
  expectStates(*trainer, model);
  ASSERT_TRUE(train(*trainer, 2, 4).isOk());
  model.step(batch(2));
  model.step(batch(3));
  expectStates(*trainer, model);
}

TEST_F(TrainerFaults, AFaultOfAnEarlierStepIsSeenByPoll) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  ASSERT_TRUE(step(*trainer, batch(0)).isOk());
  fake_cuda::failCall("cudaEventQuery", 1, cudaErrorIllegalAddress, /*sticky=*/true);
  EXPECT_EQ(trainer->poll().status().code(), Code::Device);
  EXPECT_EQ(trainer->wait().code(), Code::Device);
  fake_cuda::reset();
  ASSERT_TRUE(trainer->reset().isOk());
  expectStates(*trainer, TrainedModel());
}

/// Each CUDA call of steps, evaluation, set, save and load fails once. The checkpoint stays whole,
/// and load() makes the trainer whole again.
TEST_F(TrainerFaults, EveryCudaCallFailsOnce) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  const TrainedModel model = saveTwoSteps(*trainer);
  const auto work = [&]() -> Status {
    CGC_TRY(trainer->set("lr", 0.5));
    CGC_TRY(step(*trainer, batch(2)));
    CGC_TRY(trainer->wait());
    CGC_TRY(trainer->save(folder_ / "work"));
    CGC_TRY(trainer->load(folder_ / "run").status());
    return trainer->poll().status();
  };
  ASSERT_TRUE(work().isOk());
  fake_cuda::clearCalls();
  ASSERT_TRUE(work().isOk());
  const std::vector<fake_cuda::Call> calls = fake_cuda::calls();
  ASSERT_GE(calls.size(), 20u);
  for (size_t i = 0; i < calls.size(); ++i)
    for (const bool sticky : {false, true}) {
      SCOPED_TRACE(testing::Message() << calls[i].function << " " << i << " " << sticky);
      fake_cuda::failAnyCall(int(i + 1), cudaErrorIllegalAddress, sticky);
      (void)work();
      fake_cuda::reset();
      const auto loaded = trainer->load(folder_ / "run");
      ASSERT_TRUE(loaded.isOk()) << loaded.status().message();
      expectStates(*trainer, model);
      EXPECT_EQ(trainer->stepNumber(), 2u);
    }
}

/// Each host allocation of a step, save and load fails once.
TEST_F(TrainerFaults, EveryAllocationFailsOnce) {
  Result<Trainer> trainer = create();
  ASSERT_TRUE(trainer.isOk());
  const TrainedModel model = saveTwoSteps(*trainer);
  TrainedModel next = model;
  next.step(batch(2));
  std::vector<float> x = batch(2);
  const TensorView view = floatView(x, kParameterSizes);
  const std::string run = folder_ / "run", other = folder_ / "other";
  const std::vector<std::pair<const char *, std::function<Status()>>> parts = {
      {"step", [&] { return trainer->step({&view, 1}); }},
      {"set", [&] { return trainer->set("lr", 0.5); }},
      {"save", [&] { return trainer->save(other); }},
      {"load", [&] { return trainer->load(run).status(); }}};
  for (const auto &[name, part] : parts) {
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
      }
      // Each checkpoint is the one before or all of the new one.
      if (std::filesystem::exists(other)) {
        ASSERT_TRUE(trainer->load(other).isOk());
        expectStates(*trainer, model);
      }
      const auto loaded = trainer->load(run);
      ASSERT_TRUE(loaded.isOk()) << loaded.status().message();
      expectStates(*trainer, model);
    }
    EXPECT_TRUE(isDone);
    EXPECT_GT(count, 1) << name;
  }
}

} // namespace
} // namespace cgc::test

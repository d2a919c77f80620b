// Collectives on the fake GPU: on streams, in graphs that are replayed, and when ranks fail.
#include "runtime/exec/communicator_impl.h"
#include "tests/ranks.h"
#include "tests/unit/fake_device/fake_cuda_test.h"

#include <cstring>

namespace cgc::test {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::Each;
using testing::Eq;
using testing::HasSubstr;

class Collectives : public testing::Test {
protected:
  Collectives() { fake_cuda::reset({.devices = 8}); }
  ~Collectives() override { fake_cuda::reset(); }

  /// Runs `body` in a thread for each rank, on the rank's GPU.
  static void onGpus(Ranks ranks, const std::function<void(Communicator &)> &body) {
    ranks.haveGpus = true;
    onRanks(ranks, [&](Communicator &c) {
      ASSERT_EQ(cudaSetDevice(c.rank()), cudaSuccess);
      body(c);
    });
  }
};

/// Enqueues one collective of floats.
Status enqueueFloats(Communicator &c, CollectiveKind kind, Reduction reduction,
                     const DeviceFloats &operand, const DeviceFloats &result, size_t count,
                     cudaStream_t stream) {
  const CollectivePart part{operand.data(), result.data(), count, DType::F32};
  return enqueueCollective(c, kind, reduction, {&part, 1}, stream);
}

/// Records an event on `stream` and waits for it.
Status waitFor(Communicator &c, cudaStream_t stream, const std::string &what = "step 5") {
  const Result<CudaEvent> event = createEvent();
  EXPECT_EQ(cudaEventRecord(event->get(), stream), cudaSuccess);
  return waitWithin(c, event->get(), what);
}

/// Captures `enqueue` on a stream as a graph.
template <class Enqueue> CudaGraphExec captured(cudaStream_t stream, const Enqueue &enqueue) {
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  enqueue();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  const CudaGraph owner(graph);
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  return CudaGraphExec(exec);
}

/// A step whose result depends on the order of each sum: all kinds of collectives and a local
/// change of `x`.
struct Step {
  static constexpr size_t kCount = 1200;
  explicit Step(Communicator &c)
      : c(c), x(kCount, float(c.rank()) + 0.1f), all(kCount * c.ranks()) {}

  void enqueue(cudaStream_t stream) {
    const auto run = [&](CollectiveKind kind, Reduction reduction, const DeviceFloats &operand,
                         const DeviceFloats &result, size_t count) {
      const Status status = enqueueFloats(c, kind, reduction, operand, result, count, stream);
      ASSERT_TRUE(status.isOk()) << status.message();
    };
    run(CollectiveKind::AllReduce, Reduction::Mean, x, x, kCount);
    ASSERT_EQ(fake_cuda::enqueue(stream,
                                 [data = x.data(), rank = c.rank()] {
                                   for (size_t i = 0; i < kCount; ++i)
                                     data[i] = data[i] * 0.37f + float(rank) * 0.11f + float(i);
                                 }),
              cudaSuccess);
    run(CollectiveKind::AllGather, {}, x, all, kCount);
    run(CollectiveKind::AllReduce, Reduction::Max, all, all, 7);
    run(CollectiveKind::Broadcast, {}, x, x, 3);
    run(CollectiveKind::ReduceScatter, Reduction::Sum, all, x, all.bytes() / sizeof(float));
  }

  Communicator &c;
  DeviceFloats x, all;
};

TEST_F(Collectives, AreEqualToTheBitOnStreamsAndInGraphs) {
  for (const int ranks : {1, 2, 3, 8})
    onGpus({.count = ranks}, [](Communicator &c) {
      constexpr int kSteps = 4;
      const Result<CudaStream> stream = createStream();
      std::vector<std::vector<float>> expected;
      Step onStream(c);
      for (int i = 0; i < kSteps; ++i) {
        onStream.enqueue(stream->get());
        ASSERT_TRUE(waitFor(c, stream->get()).isOk());
        expected.push_back(onStream.x.now());
      }
      Step inGraph(c);
      const CudaGraphExec graph = captured(stream->get(), [&] { inGraph.enqueue(stream->get()); });
      for (int i = 0; i < kSteps; ++i) {
        ASSERT_EQ(cudaGraphLaunch(graph.get(), stream->get()), cudaSuccess);
        ASSERT_TRUE(waitFor(c, stream->get()).isOk());
        const std::vector<float> got = inGraph.x.now();
        ASSERT_EQ(std::memcmp(got.data(), expected[i].data(), got.size() * sizeof(float)), 0)
            << "step " << i;
      }
    });
}

TEST_F(Collectives, RunInTheOrderOfTheirCallsOnWhateverStreams) {
  onGpus({.count = 3}, [](Communicator &c) {
    const Result<CudaStream> first = createStream(), second = createStream();
    const DeviceFloats a(4, 1), b(4, 2), all(12);
    const auto enqueueBoth = [&] {
      EXPECT_TRUE(enqueueFloats(c, CollectiveKind::AllReduce, Reduction::Sum, a, a, 4, first->get())
                      .isOk());
      EXPECT_TRUE(enqueueFloats(c, CollectiveKind::AllGather, {}, b, all, 4, second->get()).isOk());
    };
    enqueueBoth();
    // The ranks ask for the streams in different orders.
    EXPECT_TRUE(waitFor(c, c.rank() == 0 ? first->get() : second->get()).isOk());
    EXPECT_TRUE(waitFor(c, c.rank() == 0 ? second->get() : first->get()).isOk());
    const CudaGraphExec graph = captured(first->get(), [&] {
      const Result<CudaEvent> fork = createEvent(), join = createEvent();
      EXPECT_EQ(cudaEventRecord(fork->get(), first->get()), cudaSuccess);
      EXPECT_EQ(cudaStreamWaitEvent(second->get(), fork->get(), 0), cudaSuccess);
      enqueueBoth();
      EXPECT_EQ(cudaEventRecord(join->get(), second->get()), cudaSuccess);
      EXPECT_EQ(cudaStreamWaitEvent(first->get(), join->get(), 0), cudaSuccess);
    });
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(cudaGraphLaunch(graph.get(), first->get()), cudaSuccess);
      const Status status = waitFor(c, first->get());
      EXPECT_TRUE(status.isOk()) << status.message();
    }
    EXPECT_THAT(a.now(), Each(Eq(19683))); // 3^9.
    EXPECT_THAT(all.now(), Each(2));
  });
}

TEST_F(Collectives, CompareFacts) {
  onGpus({.count = 2}, [](Communicator &c) {
    EXPECT_TRUE(c.agree(std::array{SharedFact{"the plan", "1"}}).isOk());
    EXPECT_THAT(c.agree(std::array{SharedFact{"the seed", std::to_string(c.rank())}}).message(),
                HasSubstr("the ranks differ in the seed: rank 0 has '0'; rank 1 has '1'"));
  });
}

TEST_F(Collectives, AReplayEndsWhenARankHangs) {
  const Variable fault("NCCL_TEST_FAULT", "1:2:hang");
  onGpus({.count = 3, .timeout = milliseconds(1000)}, [](Communicator &c) {
    const Result<CudaStream> stream = createStream();
    const DeviceFloats x(4, 1);
    const CudaGraphExec graph = captured(stream->get(), [&] {
      EXPECT_TRUE(
          enqueueFloats(c, CollectiveKind::AllReduce, Reduction::Sum, x, x, 4, stream->get())
              .isOk());
    });
    EXPECT_EQ(cudaGraphLaunch(graph.get(), stream->get()), cudaSuccess);
    EXPECT_TRUE(waitFor(c, stream->get()).isOk());
    EXPECT_EQ(cudaGraphLaunch(graph.get(), stream->get()), cudaSuccess);
    const Status status = waitFor(c, stream->get());
    EXPECT_EQ(status.code(), Code::Device);
    EXPECT_THAT(status.message(), HasSubstr("step 5 did not complete within 1 s"));
    // Later calls fail with the first reason.
    EXPECT_EQ(waitFor(c, stream->get(), "step 6").message(), status.message());
    EXPECT_EQ(enqueueFloats(c, CollectiveKind::Broadcast, {}, x, x, 4, stream->get()).message(),
              status.message());
  });
}

TEST_F(Collectives, AReplayThatFailsOnOneRankFailsOnAll) {
  for (int failing = 0; failing < 2; ++failing) {
    const Variable fault("NCCL_TEST_FAULT", std::to_string(failing) + ":3:error");
    onGpus({.count = 2}, [&](Communicator &c) {
      const Result<CudaStream> stream = createStream();
      const DeviceFloats x(4, 1);
      const CudaGraphExec graph = captured(stream->get(), [&] {
        EXPECT_TRUE(
            enqueueFloats(c, CollectiveKind::AllReduce, Reduction::Sum, x, x, 4, stream->get())
                .isOk());
      });
      for (int i = 1; i <= 3; ++i) {
        EXPECT_EQ(cudaGraphLaunch(graph.get(), stream->get()), cudaSuccess);
        const Status status = waitFor(c, stream->get());
        EXPECT_EQ(status.isOk(), i < 3);
        EXPECT_THAT(status.message(),
                    HasSubstr(i < 3                 ? ""
                              : c.rank() == failing ? "a collective failed: system error"
                                                    : "a collective failed: remote error"));
      }
    });
  }
}

TEST_F(Collectives, AFailureOfTheGpuIsTheFirstOne) {
  onGpus({.count = 1}, [](Communicator &c) {
    const Result<CudaStream> stream = createStream();
    fake_cuda::failCall("cudaEventSynchronize", 1, cudaErrorIllegalAddress);
    const Status status = waitFor(c, stream->get());
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("cannot wait for step 5"), HasSubstr("cudaErrorIllegalAddress")));
    EXPECT_EQ(c.check().message(), status.message());
  });
}

TEST_F(Collectives, ARankNeedsAGpuThatExists) {
  const Result<CommunicatorId> id = Communicator::makeId(testNccl());
  ASSERT_TRUE(id.isOk());
  const Status status =
      Communicator::create(*id, optionsOf({.count = 9, .haveGpus = true}, 8)).status();
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_THAT(status.message(), HasSubstr("8"));
}

} // namespace
} // namespace cgc::test

// Session: plans that call functions of the host, on the host and on the fake GPU.
#include "tests/unit/runtime/session/host_plan.h"

#include <future>
#include <thread>

namespace cgc::test {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

class HostCalls : public ServedPlanTest {
protected:
  static SessionOptions with(HostFunction function) {
    SessionOptions options;
    options.engine.hostFunctions = {{"visual.gate.forward", std::move(function)}};
    return options;
  }
  static Result<std::vector<float>> run(Session &session, float first = 0) {
    return ServedPlanTest::run(session, "gated", {2, 4}, first);
  }
  /// The error of creating a session.
  Status refused(SessionOptions options) {
    options.engine.provider = &provider_;
    return Session::create(plan_, options).status();
  }

  const std::shared_ptr<const Plan> plan_ = toPlan(hostPlan());
};

TEST_F(HostCalls, AreMadeBetweenTheRecords) {
  for (const ExecutorKind executor : {ExecutorKind::Graph, ExecutorKind::Stream}) {
    SessionOptions options = with(gate);
    options.context.executor = executor;
    options.context.poisonArena = true;
    Session session = createSession(plan_, options);
    for (const float first : {0.f, -3.f, 100.f})
      EXPECT_EQ(*run(session, first), gated(first));
  }
}

TEST_F(HostCalls, GetTheTensorsOfTheRecord) {
  std::vector<std::string> seen;
  Session session = createSession(
      plan_, with([&](std::span<const TensorView> in, std::span<const TensorView> out, void *s) {
        for (const auto &views : {in, out})
          for (const TensorView &view : views)
            seen.push_back(std::string(deviceName(view.device)) +
                           std::string(dtypeName(view.dtype)) + std::to_string(view.sizes[0]) +
                           "x" + std::to_string(view.sizes[1]) +
                           (view.strides.empty() ? "" : " strided"));
        EXPECT_EQ(s != nullptr, kTestDevice == DeviceKind::Cuda);
        return gate(in, out, s);
      }));
  EXPECT_TRUE(seen.empty()); // Not even on a GPU does a warm-up run make host calls.
  EXPECT_TRUE(run(session).isOk());
  const std::string one = std::string(deviceName(kTestDevice)) + "f322x4";
  EXPECT_EQ(seen, std::vector<std::string>(6, one));
}

TEST_F(HostCalls, ThePlanNeedsItsFunctions) {
  EXPECT_EQ(refused({}).code(), Code::Usage);
  EXPECT_THAT(refused({}).message(),
              HasSubstr("the plan calls the host function 'visual.gate.forward' (model.py:12, "
                        "visual.ln), which is not given"));
  EXPECT_THAT(refused(with(nullptr)).message(),
              HasSubstr("the host function 'visual.gate.forward' is null"));
  SessionOptions twice = with(gate);
  twice.engine.hostFunctions.push_back(twice.engine.hostFunctions[0]);
  EXPECT_THAT(refused(twice).message(), HasSubstr("'visual.gate.forward' is given twice"));
  SessionOptions more = with(gate);
  more.engine.hostFunctions.push_back({"other", gate});
  EXPECT_TRUE(refused(more).isOk()); // Others are ignored.
}

TEST_F(HostCalls, AFailedCallFailsTheRunAndTheNextRunSucceeds) {
  const uint64_t bytes = deviceBytesInUse();
  const size_t handles = deviceHandlesInUse();
  {
    int mode = 0;
    Session session = createSession(plan_, with([&](auto in, auto out, void *stream) -> Status {
                                      switch (std::exchange(mode, 0)) {
                                      case 1:
                                        return {Code::Mismatch, "no such expert"};
                                      case 2:
                                        throw std::runtime_error("out of experts");
                                      case 3:
                                        throw 7;
                                      case 4:
                                        throw std::bad_alloc();
                                      default:
                                        return gate(in, out, stream);
                                      }
                                    }));
    const auto fails = [&](int how, Code code, const std::string &text) {
      mode = how;
      const Status failed = run(session).status();
      EXPECT_EQ(failed.code(), code);
      EXPECT_THAT(failed.message(),
                  HasSubstr("host visual.gate.forward (model.py:12, visual.ln): " + text));
      EXPECT_THAT(failed.message(), HasSubstr("entry 'gated'"));
      EXPECT_EQ(*run(session, 5), gated(5));
    };
    fails(1, Code::Mismatch, "no such expert");
    fails(2, Code::Failed, "out of experts");
    fails(3, Code::Failed, "it threw an object that is no std::exception");
    fails(4, Code::OutOfMemory, "no host memory");
    EXPECT_EQ(session.stats().failures, 4u);
    EXPECT_TRUE(session.healthy());
  }
  EXPECT_EQ(deviceBytesInUse(), bytes);
  EXPECT_EQ(deviceHandlesInUse(), handles);
}

/// A host function whose first call returns when the test says so.
class HangingHostCalls : public HostCalls {
protected:
  SessionOptions hanging() {
    SessionOptions options = with([this](auto in, auto out, void *stream) {
      if (hangs_.exchange(false)) {
        entered_.set_value();
        leave_.get_future().wait();
      }
      return gate(in, out, stream);
    });
    options.timeout = 1ms;
    return options;
  }
  /// Begins a run, and returns once it is in the function.
  std::future<Result<std::vector<float>>> hang(Session &session) {
    auto hung = std::async(std::launch::async, [&] { return run(session, 3); });
    entered_.get_future().wait();
    return hung;
  }
  void leave() { leave_.set_value(); }

private:
  std::promise<void> entered_, leave_;
  std::atomic<bool> hangs_ = true;
};

TEST_F(HangingHostCalls, HoldTheirContextOnly) {
  SessionOptions options = hanging();
  options.contexts = 2;
  Session session = createSession(plan_, options);
  auto hung = hang(session);
  for (int i = 0; i < 10; ++i) { // The other context serves.
    EXPECT_EQ(*run(session, float(i)), gated(float(i)));
    EXPECT_EQ(*ServedPlanTest::run(session, "rows", {5, 4}), expected({5, 4}));
  }
  leave();
  EXPECT_EQ(*hung.get(), gated(3));
}

TEST_F(HangingHostCalls, RequestsThatWaitForThemAreBusy) {
  Session session = createSession(plan_, hanging());
  auto hung = hang(session);
  EXPECT_EQ(run(session).status().code(), Code::Busy);
  leave();
  EXPECT_EQ(*hung.get(), gated(3));
  EXPECT_EQ(*run(session, 1), gated(1));
}

TEST_F(HostCalls, ManyThreadsCallTheFunctionAtOnce) {
  std::atomic<int> calls = 0, wrong = 0;
  SessionOptions options = with([&](auto in, auto out, void *stream) {
    ++calls;
    return gate(in, out, stream);
  });
  options.contexts = 3;
  Session session = createSession(plan_, options);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) {
        const auto y = run(session, float(100 * t + i));
        wrong += !y.isOk() || *y != gated(float(100 * t + i));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(calls, 2 * 8 * 30);
}

TEST_F(HostCalls, AnExchangeKeepsTheFunctions) {
  Session session = createSession(plan_, with(gate));
  SamplePlan other = hostPlan();
  EXPECT_TRUE(session.swapWeights(toPlan(other)).isOk());
  EXPECT_EQ(*run(session, 2), gated(2));
  std::get<HostCall>(other.plan.entries[0].buckets[0].records[1].op).module = "visual.other";
  EXPECT_THAT(session.swapWeights(toPlan(other)).message(), HasSubstr("record 1"));
  EXPECT_THAT(session.update(toPlan(other)).message(),
              HasSubstr("the plan calls the host function 'visual.other.forward'"));
  EXPECT_EQ(*run(session, 2), gated(2));
}

} // namespace
} // namespace cgc::test

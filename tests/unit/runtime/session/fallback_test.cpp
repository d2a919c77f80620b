// Session: the requests that LibTorch runs instead of a bucket, here by a stand-in.
#include "runtime/session/fallback.h"
#include "tests/unit/runtime/session/served_plan.h"

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class SessionFallback : public ServedPlanTest {
protected:
  SessionFallback() {
    for (const char *entry : {"rows", "wide", "columns", "ids", "mixed"})
      provider_.methods[entry] = [this](auto inputs, auto outputs, void *stream) -> Status {
        ++calls_;
        const auto *x = static_cast<const float *>(inputs[0].data);
        auto *y = static_cast<float *>(outputs[0].data);
        const size_t n = *tensorBytes(DType::F32, inputs[0].sizes) / sizeof(float);
        if (!std::ranges::equal(outputs[0].sizes, inputs[0].sizes))
          return {Code::Usage, "output 'y' is of other sizes"};
        return doWork(stream, [x, y, n] {
          for (size_t i = 0; i < n; ++i)
            y[i] = float(i % 4 + 1) - x[i];
        });
      };
  }
  Session createFallbackSession(SessionOptions options = {}) {
    options.fallbackModel = "model.pt";
    return createSession(plan_, options);
  }

  std::shared_ptr<const Plan> plan_ = toPlan(servedPlan());
  std::atomic<int> calls_ = 0;
};

TEST_F(SessionFallback, RunsWhatNoBucketTakes) {
  Session session = createFallbackSession({.maxBatch = 100});
  int fallbacks = 0;
  const auto runsBy = [&](std::string_view entry, const std::vector<int64_t> &sizes,
                          bool fallback) {
    const auto y = run(session, entry, sizes, 3);
    ASSERT_TRUE(y.isOk()) << y.status().message();
    EXPECT_EQ(*y, expected(sizes, 3));
    fallbacks += fallback;
    EXPECT_EQ(calls_, fallbacks) << entry;
    EXPECT_EQ(session.stats().fallbacks, uint64_t(fallbacks));
  };
  runsBy("rows", {100, 4}, false);
  runsBy("rows", {101, 4}, true);  // Above maxBatch.
  runsBy("rows", {2, 3, 4}, true); // Another rank.
  runsBy("wide", {2, 3, 4}, false);
  runsBy("wide", {2, 5, 4}, true); // Another size.
  runsBy("mixed", {3, 4}, false);
  runsBy("mixed", {4, 4}, true); // Rows depend on each other.
  EXPECT_EQ(session.stats().failures, 0u);
  EXPECT_THAT(session.metrics("s"), HasSubstr("cgc_fallbacks_total{session=\"s\"} 4\n"));
}

TEST_F(SessionFallback, StillRefusesWhatTheModelCannotTake) {
  Session session = createFallbackSession();
  EXPECT_THAT(run(session, "none", {1, 4}).status().message(), HasSubstr("no entry 'none'"));
  EXPECT_THAT(run(session, "rows", {0, 4}).status().message(), HasSubstr("the batch is empty"));
  std::vector<float> x(20), y(20);
  const std::vector<int64_t> five = {5, 4}, four = {4, 4}, minus = {-1, 4};
  const auto message = [&](std::span<const int64_t> in, std::span<const int64_t> out, float *result,
                           DType dtype = DType::F32) {
    const TensorView input{x.data(), dtype, DeviceKind::Cpu, in, {}},
        output{result, DType::F32, DeviceKind::Cpu, out, {}};
    const Status status = session.run("mixed", {&input, 1}, {&output, 1});
    EXPECT_EQ(status.code(), Code::Usage);
    return status.message();
  };
  EXPECT_THAT(message(five, four, y.data()), HasSubstr("output 'y' is of other sizes"));
  EXPECT_THAT(message(five, five, nullptr), HasSubstr("output 'y' has no data"));
  EXPECT_THAT(message(five, five, x.data() + 1), HasSubstr("output 0 overlaps input 0"));
  EXPECT_THAT(message(minus, five, y.data()), HasSubstr("negative size"));
  EXPECT_THAT(message(five, five, y.data(), DType::I32), HasSubstr("i32 was given"));
  EXPECT_EQ(calls_, 1); // The model alone knows the sizes of its results.
}

TEST_F(SessionFallback, ChecksIndicesAgainstTheLeastBound) {
  Session session = createFallbackSession({.maxBatch = 4});
  const std::vector<int64_t> sizes = {5, 4}, idSizes = {5, 3};
  std::vector<float> x(20), y(20);
  std::vector<int64_t> ids(15, 99);
  const TensorView inputs[] = {{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}},
                               {ids.data(), DType::I64, DeviceKind::Cpu, idSizes, {}}};
  const TensorView out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
  EXPECT_TRUE(session.run("ids", inputs, {&out, 1}).isOk());
  ids[14] = 100;
  EXPECT_THAT(session.run("ids", inputs, {&out, 1}).message(),
              HasSubstr("input 'ids': element [4,2] is 100"));
  EXPECT_EQ(calls_, 1);
}

TEST_F(SessionFallback, TakesTheIndicesThatTheModelReplaces) {
  SamplePlan sample = servedPlan();
  for (Entry &entry : sample.plan.entries)
    for (Bucket &bucket : entry.buckets)
      if (entry.name == "ids")
        bucket.inputs.back().indexBounds[0].exempt = -100;
  plan_ = toPlan(sample);
  Session session = createFallbackSession({.maxBatch = 4});
  const std::vector<int64_t> sizes = {5, 4}, idSizes = {5, 3};
  std::vector<float> x(20), y(20);
  std::vector<int64_t> ids(15, -100);
  const TensorView inputs[] = {{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}},
                               {ids.data(), DType::I64, DeviceKind::Cpu, idSizes, {}}};
  const TensorView out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
  const Status status = session.run("ids", inputs, {&out, 1});
  EXPECT_TRUE(status.isOk()) << status.message();
  ids[14] = -1;
  EXPECT_THAT(session.run("ids", inputs, {&out, 1}).message(),
              HasSubstr("element [4,2] is -1, but the model reads it as an index from 0 to 99, or "
                        "-100"));
  EXPECT_EQ(calls_, 1);
}

TEST_F(SessionFallback, RunsInputsOfDifferentBatches) {
  const std::vector<int64_t> sizes = {4, 4}, idSizes = {3, 3};
  std::vector<float> x(16), y(16);
  std::vector<int64_t> ids(9);
  const TensorView inputs[] = {{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}},
                               {ids.data(), DType::I64, DeviceKind::Cpu, idSizes, {}}};
  const TensorView out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
  Session session = createSession(plan_), fallback = createFallbackSession();
  EXPECT_THAT(session.run("ids", inputs, {&out, 1}).message(),
              HasSubstr("input 'x' has a batch of 4 and input 'ids' one of 3"));
  EXPECT_TRUE(fallback.run("ids", inputs, {&out, 1}).isOk());
  EXPECT_EQ(calls_, 1);
}

TEST_F(SessionFallback, WithoutAModelTheErrorSaysHowToAddTheShapes) {
  const std::string target = kTestDevice == DeviceKind::Cpu ? "cpu" : "cuda",
                    command = "cgc compile MODEL.pt --add-to PLAN --entry mixed --target " + target;
  const auto message = [&](const std::function<void(PlanData &)> &change) {
    SamplePlan sample = servedPlan();
    change(sample.plan);
    Session session = createSession(toPlan(sample));
    return run(session, "mixed", {4, 4}).status().message();
  };
  const std::string input = " --input 'x=f32[4,4]'\nAdd -O";
  EXPECT_THAT(message([](PlanData &) {}), AllOf(HasSubstr("x=f32[2,4]"), HasSubstr(command + input),
                                                Not(HasSubstr("own dtypes"))));
  EXPECT_THAT(message([](PlanData &p) { p.precision = DType::F32; }),
              AllOf(HasSubstr(command + " --precision fp32" + input),
                    HasSubstr("give --input the model's own dtypes")));
  if (kTestDevice == DeviceKind::Cuda) {
    EXPECT_THAT(message([](PlanData &p) {
                  p.precision = DType::F32;
                  p.tf32 = true;
                }),
                HasSubstr(command + " --precision tf32" + input));
  }
}

TEST_F(SessionFallback, TakesTurnsWithOtherRequests) {
  Session session = createFallbackSession({.maxWaiting = 0});
  provider_.methods["mixed"] = [&](auto, auto, void *) -> Status {
    EXPECT_EQ(run(session, "rows", {1, 4}).status().code(), Code::Busy);
    return Status::ok();
  };
  EXPECT_TRUE(run(session, "mixed", {7, 4}).isOk());
  EXPECT_TRUE(run(session, "rows", {1, 4}).isOk());
}

TEST_F(SessionFallback, IsRefusedUnlessItIsThePlansModel) {
  const auto refused = [&](Code code, const std::string &message) {
    SessionOptions options{.fallbackModel = "model.pt"};
    options.engine.provider = &provider_;
    const Status status = Session::create(plan_, options).status();
    EXPECT_EQ(status.code(), code);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("model.pt"), HasSubstr(message)));
  };
  provider_.isOtherModel = true;
  refused(Code::Usage, "weight 'w' of the plan is [4], and the model has [5]; give the file that "
                       "the plan was compiled from");
  provider_.isOtherModel = false;
  provider_.methods = {{"another", provider_.methods.at("mixed")}};
  refused(Code::Usage, "has no method 'rows', nor another entry of the plan");
  provider_.methods.clear();
  refused(Code::InvalidFile, "this is no TorchScript");
}

TEST_F(SessionFallback, HasThePrecisionOfThePlan) {
  SamplePlan sample = servedPlan();
  for (const std::optional<DType> precision :
       {std::optional<DType>(), std::optional(DType::F16), std::optional(DType::BF16)}) {
    sample.plan.precision = precision;
    provider_.precisions.clear();
    const Session session = createSession(toPlan(sample), {.fallbackModel = "model.pt"});
    EXPECT_THAT(provider_.precisions, testing::ElementsAre(precision));
  }
}

TEST_F(SessionFallback, RefusesRequestsOfEntriesThatAreNoMethods) {
  provider_.methods.erase("mixed"); // As for an entry group.
  Session session = createFallbackSession();
  EXPECT_TRUE(run(session, "mixed", {2, 4}).isOk());
  const Status refused = run(session, "mixed", {7, 4}).status();
  EXPECT_EQ(refused.code(), Code::Usage);
  EXPECT_THAT(refused.message(), HasSubstr("entry 'mixed' takes the request, and the fallback"));
}

TEST_F(SessionFallback, KeepsItsWeights) {
  Session session = createFallbackSession();
  const auto other = toPlan(servedPlan({5, 6, 7, 8})), same = toPlan(servedPlan());
  for (const Status &refused : {session.swapWeights(other), session.update(other)}) {
    EXPECT_EQ(refused.code(), Code::Usage);
    EXPECT_THAT(refused.message(), HasSubstr("weight 'w' has other values"));
  }
  EXPECT_TRUE(session.update(same).isOk());
  EXPECT_TRUE(session.reset().isOk());
  EXPECT_EQ(*run(session, "mixed", {4, 4}), expected({4, 4}));
}

/// Weights that depend on sizes, such as interpolated positions, have one name in several plans.
TEST(CheckEqualWeights, ComparesThoseOfOneNameAndSizes) {
  const auto withPositions = [](const std::vector<float> &positions) {
    SamplePlan sample = samplePlan();
    sample.plan.weights.push_back(
        {.name = "positions", .dtype = DType::F32, .sizes = {int64_t(positions.size())}});
    sample.weights.push_back(floatBytes(positions));
    return toPlan(sample);
  };
  const auto present = withPositions({1, 2});
  EXPECT_TRUE(checkEqualWeights(*present, *withPositions({1, 2})).isOk());
  EXPECT_TRUE(checkEqualWeights(*present, *withPositions({4, 5, 6})).isOk());
  EXPECT_THAT(checkEqualWeights(*present, *withPositions({1, 3})).message(),
              HasSubstr("weight 'positions' has other values"));
}

} // namespace
} // namespace cgc::test

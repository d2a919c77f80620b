// Load: requests, rows and failures are counted, also while weights are swapped.
#include "tools/cgc/load/load.h"
#include "tools/cgc/report/load_report.h"

#include "tests/unit/runtime/session/served_plan.h"

namespace cgc::tool {
namespace {

using testing::HasSubstr;

class LoadOfASession : public test::ServedPlanTest {
protected:
  std::shared_ptr<const Plan> plan_ = test::toPlan(test::servedPlan());
  Session session_ = createSession(plan_, {.contexts = 2});

  Load createLoad(LoadOptions options, const std::vector<MixPart> &mix,
                  const std::string &entry = "rows") {
    auto kinds = requestKinds(plan_->data(), {.entries = {entry}}, mix);
    EXPECT_TRUE(kinds.isOk()) << kinds.status().message();
    auto load = Load::create(session_, *std::move(kinds), options);
    EXPECT_TRUE(load.isOk()) << load.status().message();
    return *std::move(load);
  }
};

TEST_F(LoadOfASession, CountsWhatTheSessionCounts) {
  Load load = createLoad({.clients = 3, .seconds = 0.05}, {{1, 1}, {3, 1}, {100, 1}});
  ASSERT_TRUE(load.warmUp().isOk());
  const SessionStats before = session_.stats();
  EXPECT_EQ(before.requests, 9u); // Each kind once for each client.
  const LoadFigures figures = load.run();
  const SessionStats after = session_.stats();
  EXPECT_GT(figures.requests(), 0u);
  EXPECT_EQ(figures.requests(), after.requests - before.requests);
  EXPECT_EQ(figures.rows, after.rows - before.rows);
  EXPECT_EQ(figures.rows,
            figures.succeeded[0] + 3 * figures.succeeded[1] + 100 * figures.succeeded[2]);
  EXPECT_EQ(figures.splits, figures.succeeded[2]);
  EXPECT_EQ(figures.paddedRows, figures.succeeded[1]);
  EXPECT_EQ(figures.failures(), 0u);
  EXPECT_GE(figures.seconds, 0.05);
  EXPECT_GE(figures.latency.quantile(1), figures.latency.median());

  const auto backToBack = load.backToBack(figures.succeeded);
  ASSERT_TRUE(backToBack.isOk()) << backToBack.status().message();
  EXPECT_EQ(backToBack->requests, figures.requests());
  EXPECT_EQ(backToBack->rows, figures.rows);
  EXPECT_EQ(session_.stats().requests, after.requests + backToBack->requests);
}

TEST_F(LoadOfASession, AnOpenLoopSendsWhatArrives) {
  Load load = createLoad({.clients = 4, .seconds = 0.2, .rate = 500}, {});
  const LoadFigures figures = load.run();
  // Some 100 arrive; on a slow machine a part of them becomes the backlog.
  EXPECT_GT(figures.requests() + figures.backlog, 50u);
  EXPECT_LT(figures.requests() + figures.backlog, 150u);
  EXPECT_EQ(figures.failures(), 0u);
}

TEST_F(LoadOfASession, LatencyOfAnOpenLoopBeginsWithTheArrival) {
  // All requests arrive at once, so that most of them wait for the only client.
  Load load = createLoad({.clients = 1, .seconds = 0.05, .rate = 1e6}, {{1, 1}});
  const LoadFigures figures = load.run();
  ASSERT_GT(figures.requests(), 10u);
  // Without their waits, the requests of one client take no longer together than the load.
  const double slowerHalf = figures.latency.median() * double(figures.requests()) / 2;
  EXPECT_GT(slowerHalf, 1.1 * figures.seconds * 1000);
}

TEST_F(LoadOfASession, FailuresAreCountedAndTheLoadGoesOn) {
  provider_.ops["aten::add"] = [n = 0](const test::FakeCall &, void *) mutable {
    return n++ % 2 ? Status(Code::OutOfMemory, "no room") : Status::ok();
  };
  session_ = createSession(plan_);
  Load load = createLoad({.clients = 1, .seconds = 0.05}, {{1, 1}});
  const LoadFigures figures = load.run();
  const uint64_t failed = figures.failuresByCode[size_t(Code::OutOfMemory)];
  EXPECT_GT(failed, 0u);
  EXPECT_EQ(figures.failures(), failed);
  EXPECT_NEAR(double(figures.succeeded[0]), double(failed), 1);
  EXPECT_THAT(figures.firstFailure, HasSubstr("no room"));
  const nlohmann::ordered_json json = loadJson(
      {.plan = "p", .clients = 1, .kinds = {{.entry = "rows"}}, .load = figures, .backToBack = {}});
  EXPECT_EQ(json["load"]["failures_by_code"]["out_of_memory"], failed);
  EXPECT_TRUE(json["back_to_back"].is_null());
}

TEST_F(LoadOfASession, RunsBesideSwapsOfWeights) {
  const auto other = test::toPlan(test::servedPlan({5, 6, 7, 8}));
  Load load = createLoad({.clients = 2, .seconds = 0.1}, {{5, 1}});
  uint64_t swaps = 0;
  const LoadFigures figures = load.run([&](const std::atomic<bool> &ended) {
    for (; !ended; ++swaps)
      EXPECT_TRUE(session_.swapWeights(swaps % 2 ? plan_ : other).isOk());
  });
  EXPECT_EQ(figures.failures(), 0u);
  EXPECT_EQ(session_.stats().updates, swaps);
}

TEST_F(LoadOfASession, ReportsNothingAsNull) {
  LoadReport report{.plan = "p", .kinds = {{.entry = "rows"}}};
  report.load.succeeded = {0};
  report.swap = SwapFigures{.plan = "q", .load = report.load};
  const nlohmann::ordered_json json = loadJson(report);
  EXPECT_TRUE(json["load"]["latency_ms"].is_null());
  EXPECT_TRUE(json["of_back_to_back"].is_null());
  EXPECT_TRUE(json["rate"].is_null());
  EXPECT_TRUE(json["swap"]["p99_ratio"].is_null());
  EXPECT_THAT(loadText(report), HasSubstr("closed loop"));
}

} // namespace
} // namespace cgc::tool

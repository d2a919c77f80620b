// Session: batches of any size, and requests that do not fit.
#include "runtime/session/metrics.h"
#include "runtime/session/request.h"
#include "tests/unit/runtime/session/served_plan.h"

namespace cgc::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class SessionRun : public ServedPlanTest {
protected:
  std::shared_ptr<const Plan> plan_ = toPlan(servedPlan());
};

TEST_F(SessionRun, TakesAnyBatch) {
  Session session = createSession(plan_);
  for (int64_t n = 1; n <= 200; ++n)
    EXPECT_EQ(*run(session, "rows", {n, 4}, float(n)), expected({n, 4}, float(n))) << n;
  const SessionStats stats = session.stats();
  EXPECT_EQ(stats.requests, 200u);
  EXPECT_EQ(stats.failures, 0u);
  EXPECT_EQ(stats.rows, 200u * 201 / 2);
}

TEST_F(SessionRun, TakesAnyBatchOfEachGroupOfBuckets) {
  Session session = createSession(plan_);
  for (int64_t n = 1; n <= 20; ++n) {
    for (const int64_t width : {2, 3})
      EXPECT_EQ(*run(session, "wide", {n, width, 4}), expected({n, width, 4})) << n;
    // The batch is not the first dimension, so that rows are strided.
    EXPECT_EQ(*run(session, "columns", {3, n, 4}), expected({3, n, 4})) << n;
  }
}

TEST_F(SessionRun, CountsRunsSplitsAndPaddedRows) {
  Session session = createSession(plan_);
  EXPECT_TRUE(run(session, "rows", {100, 4}).isOk()); // 64 + 16 + 16 + 4.
  EXPECT_EQ(session.stats().bucketRuns, 4u);
  EXPECT_EQ(session.stats().splits, 1u);
  EXPECT_EQ(session.stats().paddedRows, 0u);
  EXPECT_TRUE(run(session, "rows", {3, 4}).isOk()); // 4.
  EXPECT_EQ(session.stats().bucketRuns, 5u);
  EXPECT_EQ(session.stats().splits, 1u);
  EXPECT_EQ(session.stats().paddedRows, 1u);
}

TEST_F(SessionRun, PaddedRowsAreZeros) {
  std::vector<std::vector<float>> inputs;
  Session session = createSession(plan_);
  onNeg = [&](std::vector<float> x) { inputs.push_back(std::move(x)); };
  for (const int64_t n : {4, 3, 2, 3, 4})
    EXPECT_TRUE(run(session, "rows", {n, 4}, 1).isOk());
  const auto padded = [](int rows, int zeros) {
    std::vector<float> x(4 * rows);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(i + 1);
    x.resize(4 * (rows + zeros), 0);
    return x;
  };
  EXPECT_THAT(inputs,
              ElementsAre(padded(4, 0), padded(3, 1), padded(2, 2), padded(3, 1), padded(4, 0)));
}

TEST_F(SessionRun, EntriesWhoseRowsDependOnEachOtherTakeTheirBucketsOnly) {
  Session session = createSession(plan_);
  for (const int64_t n : {2, 3})
    EXPECT_EQ(*run(session, "mixed", {n, 4}), expected({n, 4}));
  for (const int64_t n : {1, 4}) {
    const Status refused = run(session, "mixed", {n, 4}).status();
    EXPECT_EQ(refused.code(), Code::Usage);
    EXPECT_THAT(refused.message(),
                AllOf(HasSubstr("entry 'mixed' was not compiled for x=f32[" + std::to_string(n)),
                      HasSubstr("x=f32[2,4]"), HasSubstr("aten.matmul (model.py:13)")));
  }
}

TEST_F(SessionRun, RefusesWhatDoesNotFit) {
  Session session = createSession(plan_, {.maxBatch = 100});
  const auto refused = [&](std::string_view entry, std::vector<int64_t> sizes,
                           const std::string &message) {
    const Status status = run(session, entry, sizes).status();
    EXPECT_EQ(status.code(), Code::Usage);
    EXPECT_THAT(status.message(), HasSubstr(message));
  };
  refused("nothing", {1, 4}, "the plan has no entry 'nothing'");
  refused("rows", {0, 4}, "the batch is empty");
  refused("rows", {101, 4}, "a batch of 101 rows is above the session's limit of 100");
  refused("rows", {1, 5}, "was not compiled for x=f32[1,5]");
  refused("rows", {4}, "was not compiled for x=f32[4]");
  EXPECT_EQ(session.stats().failures, 5u);
  EXPECT_EQ(session.stats().bucketRuns, 0u);
  EXPECT_EQ(*run(session, "rows", {100, 4}), expected({100, 4}));
}

TEST_F(SessionRun, ABatchHasAtMost16384RowsByDefault) {
  Session session = createSession(plan_);
  EXPECT_EQ(*run(session, "rows", {16384, 4}), expected({16384, 4}));
  EXPECT_THAT(run(session, "rows", {16385, 4}).status().message(),
              HasSubstr("above the session's limit of 16384"));
}

TEST_F(SessionRun, RefusesViewsThatDoNotFit) {
  Session session = createSession(plan_);
  std::vector<float> x(12), y(12);
  const std::vector<int64_t> three = {3, 4}, two = {2, 4}, transposed = {1, 3};
  const auto message = [&](TensorView in, TensorView out) {
    const Status status = session.run("rows", {&in, 1}, {&out, 1});
    EXPECT_EQ(status.code(), Code::Usage);
    return status.message();
  };
  const TensorView in{x.data(), DType::F32, DeviceKind::Cpu, three, {}},
      out{y.data(), DType::F32, DeviceKind::Cpu, three, {}};
  const auto with = [](TensorView view, auto member, auto value) {
    view.*member = value;
    return view;
  };
  EXPECT_THAT(message(in, with(out, &TensorView::sizes, std::span<const int64_t>(two))),
              HasSubstr("output 'y' is f32[3,4], and f32[2,4] was given"));
  EXPECT_THAT(message(with(in, &TensorView::dtype, DType::I32), out),
              HasSubstr("input 'x' of entry 'rows' is f32, and i32 was given"));
  EXPECT_THAT(message(with(in, &TensorView::data, nullptr), out), HasSubstr("has no data"));
  EXPECT_THAT(message(with(in, &TensorView::strides, std::span<const int64_t>(transposed)), out),
              HasSubstr("input 'x' is strided"));
  EXPECT_THAT(message(in, with(out, &TensorView::data, x.data() + 11)),
              HasSubstr("output 0 overlaps input 0"));
  EXPECT_EQ(session.run("rows", {}, {&out, 1}).code(), Code::Usage);
  EXPECT_EQ(session.run("rows", {&in, 1}, {}).code(), Code::Usage);
}

TEST_F(SessionRun, ChecksIndicesOfEveryRow) {
  Session session = createSession(plan_);
  const std::vector<int64_t> sizes = {7, 4}, idSizes = {7, 3}, sixIds = {6, 3};
  std::vector<float> x(28), y(28);
  std::vector<int64_t> ids(21, 99);
  TensorView inputs[] = {{x.data(), DType::F32, DeviceKind::Cpu, sizes, {}},
                         {ids.data(), DType::I64, DeviceKind::Cpu, idSizes, {}}};
  const TensorView out{y.data(), DType::F32, DeviceKind::Cpu, sizes, {}};
  EXPECT_TRUE(session.run("ids", inputs, {&out, 1}).isOk());
  for (const size_t element : {0, 11, 12, 20}) {
    ids[element] = 100;
    const Status refused = session.run("ids", inputs, {&out, 1});
    EXPECT_THAT(refused.message(),
                HasSubstr("input 'ids': element [" + std::to_string(element / 3) + "," +
                          std::to_string(element % 3) + "] is 100, but"));
    ids[element] = 0;
  }
  inputs[1].sizes = sixIds;
  EXPECT_THAT(session.run("ids", inputs, {&out, 1}).message(),
              HasSubstr("input 'x' has a batch of 7 and input 'ids' one of 6"));
}

TEST_F(SessionRun, HasMetricsForPrometheus) {
  Session session = createSession(plan_);
  EXPECT_TRUE(run(session, "rows", {100, 4}).isOk());
  EXPECT_FALSE(run(session, "none", {1, 4}).isOk());
  const std::string text = session.metrics("a \"clip\"");
  for (const char *line :
       {"# TYPE cgc_requests_total counter\ncgc_requests_total{session=\"a \\\"clip\\\"\"} 2\n",
        "cgc_failures_total{session=\"a \\\"clip\\\"\",code=\"usage\"} 1\n",
        "cgc_failures_total{session=\"a \\\"clip\\\"\",code=\"busy\"} 0\n",
        "cgc_rows_total{session=\"a \\\"clip\\\"\"} 100\n",
        "cgc_memory_bytes{session=\"a \\\"clip\\\"\",kind=\"weights\"} 16\n",
        "cgc_healthy{session=\"a \\\"clip\\\"\"} 1\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(PrometheusText, WritesSecondsAndEscapesNames) {
  SessionStats stats;
  stats.waitMicros = 3'050'007;
  const std::string text = prometheusText(stats, {}, /*isHealthy=*/false, "a\\b\nc");
  EXPECT_THAT(text, HasSubstr("cgc_wait_seconds_total{session=\"a\\\\b\\nc\"} 3.050007\n"));
  EXPECT_THAT(text, HasSubstr("cgc_healthy{session=\"a\\\\b\\nc\"} 0\n"));
}

TEST(CheckOverlaps, FindsOutputsThatOverlapAnyOtherView) {
  std::vector<float> memory(12);
  const std::vector<int64_t> four = {4};
  const auto at = [&](size_t offset) {
    return TensorView{memory.data() + offset, DType::F32, DeviceKind::Cpu, four, {}};
  };
  const TensorView in = at(0), apart[] = {at(4), at(8)}, overlapping[] = {at(4), at(7)},
                   onInput[] = {at(8), at(3)};
  EXPECT_TRUE(checkOverlaps({&in, 1}, apart).isOk());
  EXPECT_THAT(checkOverlaps({&in, 1}, overlapping).message(),
              HasSubstr("output 1 overlaps output 0"));
  EXPECT_THAT(checkOverlaps({&in, 1}, onInput).message(), HasSubstr("output 1 overlaps input 0"));
}

TEST_F(SessionRun, CapturesOnFirstUseIfAsked) {
  SessionOptions options{.contexts = 2};
  options.context.capture = CaptureTime::OnFirstUse;
  Session session = createSession(plan_, options);
  EXPECT_EQ(*run(session, "rows", {5, 4}), expected({5, 4}));
  EXPECT_TRUE(session.prepare("rows", 70).isOk());
  EXPECT_TRUE(session.prepare("mixed", 0).isOk());
  EXPECT_EQ(*run(session, "rows", {70, 4}), expected({70, 4}));
  EXPECT_EQ(session.prepare("rows", 0).code(), Code::Usage);
  EXPECT_EQ(session.prepare("none", 1).code(), Code::Usage);
}

TEST_F(SessionRun, RefusesOptionsThatDoNotFit) {
  const auto refused = [&](SessionOptions options, const std::string &message) {
    options.engine.provider = &provider_;
    const Status status = Session::create(plan_, options).status();
    EXPECT_EQ(status.code(), Code::Usage);
    EXPECT_THAT(status.message(), HasSubstr(message));
  };
  refused({.contexts = 0}, "at least one context");
  refused({.contexts = -5}, "at most 1024, not -5");
  refused({.capturedContexts = 5000}, "not 5000");
  refused({.maxBatch = 0}, "from 1 to 1048576 rows, not 0");
  refused({.devices = {0, 0}}, "GPU 0 is given twice");
  EXPECT_EQ(Session::create(nullptr).status().code(), Code::Usage);
}

} // namespace
} // namespace cgc::test

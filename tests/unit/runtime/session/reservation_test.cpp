// Reservations: inputs and outputs are written and read where they are, on the host and on the fake
// GPU, whose memory is the host's.
#include "tests/unit/runtime/session/served_plan.h"

namespace cgc::test {
namespace {

using testing::HasSubstr;

class Reservations : public ServedPlanTest {
protected:
  static std::span<float> floats(const TensorView &view) {
    return {static_cast<float *>(view.data), *tensorBytes(view.dtype, view.sizes) / sizeof(float)};
  }
  static void write(const Reservation &reservation, float first) {
    float next = first;
    for (float &x : floats(*reservation.inputBuffer(0)))
      x = next++;
  }
  static std::vector<float> read(const Reservation &reservation) {
    const std::span<float> y = floats(*reservation.outputBuffer(0));
    return {y.begin(), y.end()};
  }
};

TEST_F(Reservations, RunOnWhatTheCallerWroteInPlace) {
  Session session = createSession(toPlan(servedPlan()));
  for (const int64_t rows : {4, 3, 16}) { // Exact, padded, exact.
    Reservation reservation = *session.reserve("rows", rows);
    const std::vector<int64_t> sizes = {rows, 4};
    EXPECT_EQ(floats(*reservation.inputBuffer(0)).size(), size_t(rows) * 4);
    EXPECT_EQ(reservation.inputBuffer(0)->device, kTestDevice);
    for (const float first : {3.f, -8.f}) {
      write(reservation, first);
      ASSERT_TRUE(reservation.run().isOk());
      EXPECT_EQ(read(reservation), expected(sizes, first));
    }
    EXPECT_EQ(reservation.inputBuffer(1).status().code(), Code::Usage);
    EXPECT_EQ(reservation.outputBuffer(1).status().code(), Code::Usage);
  }
  EXPECT_EQ(session.stats().requests, 6u);
  EXPECT_EQ(session.stats().bucketRuns, 6u);
  EXPECT_EQ(session.stats().paddedRows, 2u);
}

TEST_F(Reservations, CheckTheIndicesOfTheirRowsOnly) {
  Session session = createSession(toPlan(servedPlan()));
  const auto writeIds = [](const Reservation &reservation, int64_t id) {
    const TensorView ids = *reservation.inputBuffer(1);
    std::fill_n(static_cast<int64_t *>(ids.data), *tensorBytes(ids.dtype, ids.sizes) / 8, id);
  };
  writeIds(*session.reserve("ids", 4), 100); // Of no row of the table.
  Reservation reservation = *session.reserve("ids", 3);
  writeIds(reservation, 99);
  const Status status = reservation.run();
  EXPECT_TRUE(status.isOk()) << status.message();
}

/// Also if the reservation wrote its input and never ran.
TEST_F(Reservations, LeaveNothingInThePaddingOfLaterRequests) {
  Session session = createSession(toPlan(servedPlan()));
  write(*session.reserve("rows", 4), 100);
  std::vector<float> seen;
  onNeg = [&](std::vector<float> x) { seen = std::move(x); };
  EXPECT_EQ(*run(session, "rows", {3, 4}), expected({3, 4}));
  ASSERT_EQ(seen.size(), 16u);
  EXPECT_EQ(std::vector<float>(seen.end() - 4, seen.end()), std::vector<float>(4, 0));
  {
    Reservation reservation = *session.reserve("rows", 3);
    write(reservation, 1);
    ASSERT_TRUE(reservation.run().isOk());
    EXPECT_EQ(std::vector<float>(seen.end() - 4, seen.end()), std::vector<float>(4, 0));
  }
  onNeg = nullptr;
}

TEST_F(Reservations, KeepTheirPlanWithoutHoldingUpAnUpdate) {
  Session session = createSession(toPlan(servedPlan()));
  {
    Reservation reservation = *session.reserve("rows", 4);
    ASSERT_TRUE(session.swapWeights(toPlan(servedPlan({5, 6, 7, 8}))).isOk());
    write(reservation, 2);
    ASSERT_TRUE(reservation.run().isOk());
    EXPECT_EQ(read(reservation), expected({4, 4}, 2));
    EXPECT_EQ(*run(session, "rows", {4, 4}), expected({4, 4}, 0, {5, 6, 7, 8}));
  }
  const uint64_t afterwards = deviceBytesInUse();
  ASSERT_TRUE(session.swapWeights(toPlan(servedPlan())).isOk());
  EXPECT_EQ(deviceBytesInUse(), afterwards); // The old plan was freed with the reservation.
}

TEST_F(Reservations, HoldTheirContext) {
  Session session = createSession(toPlan(servedPlan()), {.timeout = std::chrono::milliseconds(1)});
  {
    const Reservation reservation = *session.reserve("rows", 4);
    EXPECT_EQ(run(session, "rows", {4, 4}).status().code(), Code::Busy);
    EXPECT_EQ(session.reserve("rows", 4).status().code(), Code::Busy);
  }
  EXPECT_TRUE(run(session, "rows", {4, 4}).isOk());
}

TEST_F(Reservations, OfAPlanOnTheHostHaveNoGpu) {
  Session session = createSession(toPlan(servedPlan()));
  const bool onGpu = kTestDevice == DeviceKind::Cuda;
  EXPECT_EQ(session.reserve("rows", 4)->device(), onGpu ? std::optional(0) : std::nullopt);
  const Status named = session.reserve("rows", 4, 0).status();
  EXPECT_EQ(named.isOk(), onGpu) << named.message();
}

TEST_F(Reservations, NeedOneBucket) {
  Session session = createSession(toPlan(servedPlan()));
  const auto refusal = [&](std::string_view entry, int64_t batch) {
    const Status status = session.reserve(entry, batch).status();
    EXPECT_EQ(status.code(), Code::Usage);
    return status.message();
  };
  EXPECT_THAT(refusal("none", 4), HasSubstr("none"));
  EXPECT_THAT(refusal("rows", 65), HasSubstr("no single bucket for 65 rows"));
  EXPECT_THAT(refusal("rows", 0), HasSubstr("no single bucket"));
  EXPECT_THAT(refusal("wide", 2), HasSubstr("2 buckets for 2 rows"));
  EXPECT_THAT(refusal("mixed", 1), HasSubstr("no single bucket")); // Its rows are not padded.
  EXPECT_THAT(refusal("columns", 4), HasSubstr("inner dimension"));
  EXPECT_TRUE(session.reserve("mixed", 3).isOk());
  EXPECT_TRUE(session.reserve("columns", 5).isOk());
}

TEST_F(Reservations, CheckIndicesOnTheHost) {
  if (kTestDevice != DeviceKind::Cpu)
    return; // Indices in device memory are not checked.
  Session session = createSession(toPlan(servedPlan()));
  Reservation reservation = *session.reserve("ids", 3);
  static_cast<int64_t *>(reservation.inputBuffer(1)->data)[8] = 100;
  EXPECT_EQ(reservation.run().code(), Code::Usage);
  static_cast<int64_t *>(reservation.inputBuffer(1)->data)[8] = 99;
  EXPECT_TRUE(reservation.run().isOk());
}

} // namespace
} // namespace cgc::test

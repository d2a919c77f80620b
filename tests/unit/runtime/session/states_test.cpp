// Sessions of plans with states: trained parameters are refused, control numbers are served.
#include "runtime/plan/plan_memory.h"
#include "tests/unit/runtime/session/served_plan.h"
#include "tests/unit/runtime/training_plan.h"

namespace cgc::test {
namespace {

using testing::HasSubstr;

TEST_F(ServedPlanTest, PlansThatTrainAreRefused) {
  SamplePlan sample = trainingPlan(kTestDevice);
  provider_.ops = trainingOps(doWork);
  const auto create = [&] {
    SessionOptions options;
    options.engine.provider = &provider_;
    return Session::create(
        std::make_shared<const Plan>(*Plan::fromMemory(sample.plan, sample.weights)), options);
  };
  const Status refused = create().status();
  EXPECT_EQ(refused.code(), Code::Usage);
  EXPECT_THAT(refused.message(), HasSubstr("it is a training plan; run it with `cgc train`"));

  sample.plan.states[0].role = StateRole::Control;
  Result<Session> session = create();
  ASSERT_TRUE(session.isOk()) << session.status().message();
  EXPECT_EQ(session->memory().states, planMemory(sample.plan).states);
}

TEST_F(ServedPlanTest, EachContextHasASeedOfItsOwn) {
  Session session = createSession(toPlan(seedPlan()), {.contexts = 3, .seed = 7});
  std::vector<Reservation> reserved;
  std::vector<int64_t> seeds;
  for (int i = 0; i < 3; ++i) {
    reserved.push_back(*session.reserve("seed", 1));
    ASSERT_TRUE(reserved.back().run().isOk());
    seeds.push_back(*static_cast<const int64_t *>(reserved.back().outputBuffer(0)->data));
  }
  const int64_t two32 = int64_t(1) << 32;
  EXPECT_THAT(seeds, testing::UnorderedElementsAre(7, 7 + two32, 7 + 2 * two32));
}

} // namespace
} // namespace cgc::test

// The C API: a program in C99 loads a plan and serves it.
#include "tests/paths.h"
#include "tests/temp_folder.h"
#include "tests/unit/runtime/session/served_plan.h"

#include <cstdlib>

namespace cgc::test {
namespace {

TEST(CApi, ServesAPlanFromC99) {
  const TempFolder folder;
  const std::string path = folder / "served.cgplan";
  const SamplePlan sample = servedPlan();
  ASSERT_TRUE(writePlan(sample.plan, sample.weightSpans(), path).isOk());
  // y = gate(x) for x of f32[2,4].
  SamplePlan hosted = sample;
  Bucket bucket = sumBucket({2, 4}, 0);
  bucket.records = {{HostCall{"gate", "forward", {id(0)}, {id(4)}}}};
  hosted.plan.entries = {{.name = "twice", .buckets = {bucket}}};
  const std::string hostPath = folder / "hosted.cgplan";
  ASSERT_TRUE(writePlan(hosted.plan, hosted.weightSpans(), hostPath).isOk());
  SamplePlan larger = sample;
  larger.plan.entries[0].buckets.push_back(sumBucket({128, 4}, 0));
  const std::string largerPath = folder / "larger.cgplan";
  ASSERT_TRUE(writePlan(larger.plan, larger.weightSpans(), largerPath).isOk());
  const std::string command = "'" + buildDir().string() + "/bin/cgc_test_c_api' '" + path + "' '" +
                              hostPath + "' '" + largerPath + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

} // namespace
} // namespace cgc::test

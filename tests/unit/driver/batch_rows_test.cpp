// Tests of what compile() says about the batch of an entry: its dimensions, whether rows are
// independent, and the reason why not.
#include "driver/compile.h"

#include "ir/text/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::driver {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Compiles the methods of a module whose inputs are given. An empty plan, with a test failure, if
/// it fails.
PlanData compiled(const std::string &methods, std::vector<InputSpec> inputs,
                  std::vector<int64_t> batches) {
  ir::Diagnostics diagnostics;
  const auto root = ir::parseModule("module @root class=\"Root\" {\n" + methods + "}\n",
                                    "model.cgir", diagnostics);
  EXPECT_TRUE(root) << diagnostics.render();
  CompileOptions options;
  options.target = DeviceKind::Cpu;
  options.inputs = std::move(inputs);
  options.batches = std::move(batches);
  const auto plan = compile(*root, options, diagnostics);
  EXPECT_TRUE(plan) << plan.status().message();
  return plan ? plan->plan : PlanData();
}

/// The body of a method @f of one input %x.
PlanData compiledBody(const std::string &body, std::vector<int64_t> batches) {
  return compiled("graph @f(%x: dynamic) -> dynamic {\n" + body + "}\n",
                  {{"x", DType::F32, {3, 4}}}, std::move(batches));
}

std::vector<int32_t> dimsOf(const std::vector<IoTensor> &tensors) {
  std::vector<int32_t> dims;
  for (const IoTensor &tensor : tensors)
    dims.push_back(tensor.batchDim);
  return dims;
}

constexpr const char *kTowers = R"(
  graph @encode_image(%image: dynamic) -> dynamic {
    %0 = aten.flatten(%image) {start_dim=1} : dynamic
    %1 = aten.linalg_vector_norm(%0) {dim=[-1], keepdim=true} : dynamic
    %2 = aten.div(%0, %1) : dynamic
    output %2
  }
  graph @tokens_first(%image: dynamic) -> dynamic {
    %0 = aten.permute(%image) {dims=[1, 0, 2]} : dynamic
    output %0
  }
  graph @forward(%image: dynamic, %text: dynamic) -> (dynamic, dynamic) {
    %0 = aten.flatten(%image) {start_dim=1} : dynamic
    %1 = aten.transpose(%text) {dim0=0, dim1=1} : dynamic
    %2 = aten.matmul(%0, %1) : dynamic loc("model.py":371 "head")
    %3 = aten.relu(%2) : dynamic loc("model.py":372)
    %4 = aten.mean(%text) {dim=[1]} : dynamic
    output %3, %4
  }
)";

TEST(BatchRows, AreIndependentInTowersAndNotInLogits) {
  const PlanData plan =
      compiled(kTowers, {{"image", DType::F32, {1, 2, 3}}, {"text", DType::F32, {1, 6}}}, {1, 4});
  const Entry *image = plan.findEntry("encode_image"), *tokens = plan.findEntry("tokens_first"),
              *forward = plan.findEntry("forward");
  ASSERT_TRUE(image && tokens && forward);
  EXPECT_TRUE(image->rows.independent) << image->rows.reason;
  EXPECT_TRUE(tokens->rows.independent) << tokens->rows.reason;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_THAT(dimsOf(image->buckets[i].inputs), ElementsAre(0));
    EXPECT_THAT(dimsOf(image->buckets[i].outputs), ElementsAre(0));
    EXPECT_THAT(dimsOf(tokens->buckets[i].outputs), ElementsAre(1));
    EXPECT_THAT(dimsOf(forward->buckets[i].inputs), ElementsAre(0, 0));
    EXPECT_THAT(dimsOf(forward->buckets[i].outputs), ElementsAre(kNoBatchDim, 0));
    EXPECT_GT(image->buckets[i].expectedMicros, 0);
    EXPECT_FALSE(image->buckets[i].isMeasured);
  }
  EXPECT_LE(image->buckets[0].expectedMicros, image->buckets[1].expectedMicros);
  EXPECT_FALSE(forward->rows.independent);
  EXPECT_EQ(forward->rows.op, "aten.matmul") << "not the relu, whose argument is mixed already";
  EXPECT_EQ(forward->rows.reason, "it combines different rows");
  ASSERT_NE(forward->rows.location, kNoLocation);
  EXPECT_EQ(plan.locations[uint32_t(forward->rows.location)],
            (SourceLocation{"model.py", 371, "head"}));
}

TEST(BatchRows, DependOnTheBatchIfANumberDoes) {
  const PlanData plan = compiledBody(R"(
    %0 = aten.size(%x) {dim=0} : dynamic
    %1 = aten.div(%x, %0) : dynamic
    output %1
  )",
                                     {3});
  const BatchRows &rows = plan.entries.at(0).rows;
  EXPECT_EQ(rows.op, "aten.div");
  EXPECT_THAT(rows.reason, HasSubstr("its argument 'other' is"));
}

/// The quotient is 0 for each bucket, but not a number that the size of the batch leaves alone.
TEST(BatchRows, DependOnTheBatchThroughAQuotientOfSums) {
  const BatchRows rows = compiledBody(R"(
    %0 = aten.size(%x) {dim=0} : dynamic
    %1 = aten.add(%0, 1) : dynamic
    %2 = aten.div(%0, %1) : dynamic
    %3 = aten.mul(%x, %2) : dynamic
    output %3
  )",
                                      {1, 3})
                             .entries.at(0)
                             .rows;
  EXPECT_FALSE(rows.independent);
}

/// The body of a method that runs other ops if this comparison of its batch, %0, holds.
std::string bodyWithBranch(const std::string &comparison) {
  return "%0 = aten.size(%x) {dim=0} : dynamic\n%1 = " + comparison + R"(
    prim.if(%1)
    %2 = aten.neg(%x) : dynamic
    prim.else()
    %3 = aten.relu(%x) : dynamic
    %4 = prim.end_if([%2], [%3]) : dynamic
    output %4
  )";
}

TEST(BatchRows, DependOnTheBatchIfABranchDoes) {
  const std::string body = bodyWithBranch("prim.equal(%0, 1) : dynamic loc(\"model.py\":8)");
  for (const std::vector<int64_t> &batches : {std::vector<int64_t>{1, 3}, {3}}) {
    const PlanData plan = compiledBody(body, batches); // Even if all buckets take one side.
    const BatchRows &rows = plan.entries.at(0).rows;
    EXPECT_FALSE(rows.independent);
    EXPECT_EQ(rows.op, "prim.equal");
    EXPECT_EQ(rows.reason, "it compares the size of the batch with another number");
    ASSERT_NE(rows.location, kNoLocation);
    EXPECT_EQ(plan.locations[uint32_t(rows.location)], (SourceLocation{"model.py", 8, ""}));
  }
}

BatchRows rowsOfBranch(const std::string &comparison) {
  return compiledBody(bodyWithBranch(comparison + " : dynamic"), {3}).entries.at(0).rows;
}

TEST(BatchRows, DependOnTheBatchIfABranchDiffersForABatchOfOne) {
  for (const char *comparison :
       {"aten.gt(%0, 1)", "aten.le(%0, 1)", "aten.lt(%0, 2)", "aten.ge(%0, 2)", "aten.lt(1, %0)",
        "aten.ge(1, %0)", "aten.gt(2, %0)", "aten.le(2, %0)"}) {
    const BatchRows rows = rowsOfBranch(comparison);
    EXPECT_FALSE(rows.independent) << comparison;
    EXPECT_EQ(rows.reason, "it compares the size of the batch with another number") << comparison;
  }
}

/// No batch is empty.
TEST(BatchRows, AreIndependentIfABranchIsTheSameForAllBatches) {
  for (const char *comparison :
       {"aten.gt(%0, 0)", "aten.le(%0, 0)", "aten.lt(%0, 1)", "aten.ge(%0, 1)", "aten.lt(0, %0)",
        "aten.ge(0, %0)", "aten.gt(1, %0)", "aten.le(1, %0)"}) {
    const BatchRows rows = rowsOfBranch(comparison);
    EXPECT_TRUE(rows.independent) << comparison << ": " << rows.reason;
  }
}

TEST(BatchRows, DependOnTheBatchIfASliceEndsAtANumberOrAtTheBatch) {
  const PlanData rows = compiledBody("%0 = aten.slice(%x) {dim=0, start=0, end=20000} : dynamic\n"
                                     "output %0\n",
                                     {3}),
                 columns = compiledBody(R"(
    %0 = aten.size(%x) {dim=0} : dynamic
    %1 = aten.slice(%x) {dim=1, start=0, end=%0} : dynamic
    output %1
  )",
                                        {8});
  EXPECT_THAT(rows.entries.at(0).rows.reason, HasSubstr("ends at row 20000"));
  EXPECT_THAT(columns.entries.at(0).rows.reason, HasSubstr("its argument 'end' is"))
      << "batches below 4 leave columns out";
}

TEST(BatchRows, DependOnTheBatchIfABatchOfOneIsDropped) {
  const std::string body = "%0 = aten.squeeze(%x) : dynamic\n"
                           "%1 = aten.view(%0) {size=[-1, 4]} : dynamic\n"
                           "output %1\n";
  const PlanData withOne = compiledBody(body, {1, 3}), without = compiledBody(body, {2, 3});
  EXPECT_EQ(withOne.entries.at(0).rows.op, "aten.squeeze");
  EXPECT_EQ(withOne.entries[0].rows.reason,
            "its result is f32[1009,4] for a batch of 1009, and f32[4] for one of 1");
  EXPECT_TRUE(without.entries.at(0).rows.independent) << without.entries[0].rows.reason;
}

TEST(BatchRows, AreNotKnownOfAModelForOneBatch) {
  const PlanData plan =
      compiledBody("%0 = aten.view(%x) {size=[3, 2, 2]} : dynamic\noutput %0\n", {3});
  const BatchRows &rows = plan.entries.at(0).rows;
  EXPECT_EQ(rows.op, "");
  EXPECT_THAT(rows.reason, HasSubstr("the model does not run with every batch"));
  EXPECT_EQ(rows.location, kNoLocation);
  EXPECT_THAT(dimsOf(plan.entries[0].buckets[0].inputs), ElementsAre(kNoBatchDim));
}

TEST(BatchRows, OfAnOutputLieInOneDimensionOfTheBatch) {
  const PlanData plan = compiledBody("%0 = aten.flatten(%x) : dynamic\noutput %0\n", {3});
  EXPECT_THAT(plan.entries.at(0).rows.reason,
              HasSubstr("output 0 holds rows in dimension 0, every 4"));
}

TEST(BatchRows, HaveOneBatchInAllInputs) {
  const std::string sum = R"(
    graph @f(%x: dynamic, %y: dynamic) -> dynamic {
      %0 = aten.mean(%y) : dynamic
      %1 = aten.add(%x, %0) : dynamic
      output %1
    }
  )";
  const PlanData two = compiled(sum, {{"x", DType::F32, {3, 4}}, {"y", DType::F32, {2, 4}}}, {});
  EXPECT_EQ(two.entries.at(0).rows.reason, "dimension 0 is 3 in 'x' and 2 in 'y'");
  // What has one row while others have three belongs to all of them.
  const PlanData one = compiled(sum, {{"x", DType::F32, {3, 4}}, {"y", DType::F32, {1, 4}}}, {});
  EXPECT_TRUE(one.entries.at(0).rows.independent) << one.entries[0].rows.reason;
  EXPECT_THAT(dimsOf(one.entries[0].buckets[0].inputs), ElementsAre(0, kNoBatchDim));
}

} // namespace
} // namespace cgc::driver

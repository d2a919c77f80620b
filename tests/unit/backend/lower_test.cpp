// Tests of lower(): views without records, where outputs are written, weights, locations, buckets,
// and errors.
#include "backend/bucket_builder.h"
#include "runtime/plan/names.h"
#include "tests/unit/backend/lowered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

namespace cgc::backend {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Lower, ViewsMakeNoRecords) {
  auto module = parse(R"(graph @g(%x: f32[2,3,4]) {
    %0 = aten.transpose(%x) {dim0=0, dim1=1} : f32[3,2,4][4,12,1]
    %1 = aten.select(%0) {dim=0, index=2} : f32[2,4][12,1]
    %2 = aten.neg(%1) : f32[2,4]
    output %2
  })");
  auto plan = lowerAll(*module);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  EXPECT_THAT(recordNames(bucket), ElementsAre("aten::neg.out"));
  const TensorRef &read = bucket.tensors[static_cast<uint32_t>(recordReads(bucket.records[0])[0])];
  EXPECT_EQ(read.slot, (Slot{BufferKind::Input, 0, 2 * 4 * sizeof(float)}));
  EXPECT_THAT(read.strides, ElementsAre(12, 1));
  EXPECT_EQ(written(bucket, 0), (Slot{BufferKind::Output, 0, 0}));
  EXPECT_EQ(bucket.arenaBytes, 0u);
}

TEST(Lower, LocationsOfAPlanAreShortAndPrintable) {
  LocationTable table;
  table.add({"dir\xe2\x80\xae/model.py", 7, std::string(5000, 'm')});
  table.add({"dir\xe2\x80\xae/model.py", 7, std::string(5000, 'm')});
  const std::vector<SourceLocation> locations = table.take();
  ASSERT_EQ(locations.size(), 1u);
  EXPECT_EQ(locations[0].file, "dir\\xe2\\x80\\xae/model.py");
  EXPECT_LE(locations[0].module.size(), kMaxNameBytes);
}

TEST(Lower, OutputsAreCopiedOnlyWhereTheyMustBe) {
  auto module = parse(R"(graph @g(%x: f32[2,3]) {
    %0 = aten.neg(%x) : f32[2,3]
    %1 = aten.view(%0) {size=[3,2]} : f32[3,2]
    %2 = aten.transpose(%0) {dim0=0, dim1=1} : f32[3,2][1,3]
    output %1, %0, %2, %x
  })");
  auto plan = lowerAll(*module);
  ASSERT_TRUE(plan) << plan.status().message();
  // %0 is written directly to output 0, in the shape of %1; the strided view needs a strided copy.
  EXPECT_THAT(recordNames(plan->plan.entries[0].buckets[0]),
              ElementsAre("aten::neg.out", "memcpy", "aten::copy_", "memcpy"));
}

TEST(Lower, AnEmptyViewBeginsInsideItsMemory) {
  auto plan = lowerAll(*parse(R"(graph @g(%x: f32[5,4]) {
    %0 = aten.slice(%x) {start=5} : f32[0,4]
    %1 = aten.slice(%0) {dim=1, start=2} : f32[0,2][4,1]
    %2 = aten.neg(%1) : f32[0,2]
    output %2
  })"));
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_EQ(read(plan->plan.entries[0].buckets[0], 0), (Slot{BufferKind::Input, 0, 0}));
}

TEST(Lower, AViewOfTheArenaBeginsInsideItsOwnersBuffer) {
  auto module = parse(R"(graph @g(%x: f32[2,4]) {
    %0 = aten.neg(%x) : f32[2,4]
    %1 = aten.exp(%x) : f32[2,4]
    %2 = aten.select(%0) {dim=0, index=1} : f32[4]
    %3 = aten.select(%1) {dim=0, index=1} : f32[4]
    %4 = aten.sin(%2) : f32[4]
    %5 = aten.cos(%3) : f32[4]
    output %4, %5
  })");
  auto plan = lowerAll(*module);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  ASSERT_THAT(recordNames(bucket),
              ElementsAre("aten::neg.out", "aten::exp.out", "aten::sin.out", "aten::cos.out"));
  const Slot first = written(bucket, 0), second = written(bucket, 1);
  ASSERT_EQ(first.buffer, BufferKind::Arena);
  ASSERT_NE(first.offset, second.offset);
  EXPECT_EQ(read(bucket, 2), (Slot{BufferKind::Arena, 0, first.offset + 4 * sizeof(float)}));
  EXPECT_EQ(read(bucket, 3), (Slot{BufferKind::Arena, 0, second.offset + 4 * sizeof(float)}));
}

/// An output that is only a part of what a record computes.
TEST(Lower, APartOfAResultIsCopiedToTheOutput) {
  for (const char *slice : {"start=0, end=1", "start=1, end=2"}) {
    auto plan = lowerAll(*parse(std::string(R"(graph @g(%x: f32[2,4]) {
      %0 = aten.neg(%x) : f32[2,4]
      %1 = aten.slice(%0) {)") + slice +
                                R"(} : f32[1,4]
      output %1
    })"));
    ASSERT_TRUE(plan) << plan.status().message();
    const Bucket &bucket = plan->plan.entries[0].buckets[0];
    EXPECT_THAT(recordNames(bucket), ElementsAre("aten::neg.out", "memcpy")) << slice;
    EXPECT_EQ(written(bucket, 0).buffer, BufferKind::Arena) << slice;
  }
}

TEST(MergeLeading, OnlyWhereOneStrideReachesAllRows) {
  const auto merged = [](ir::Dims sizes, ir::Dims strides) {
    return mergeLeading({.sizes = std::move(sizes), .strides = std::move(strides)}, 2);
  };
  auto dense = merged({2, 3, 4}, {12, 4, 1});
  ASSERT_TRUE(dense);
  EXPECT_THAT(dense->sizes, ElementsAre(6, 4));
  EXPECT_THAT(dense->strides, ElementsAre(4, 1));
  auto wideRows = merged({2, 3, 4}, {30, 10, 1});
  ASSERT_TRUE(wideRows);
  EXPECT_THAT(wideRows->strides, ElementsAre(10, 1));
  EXPECT_FALSE(merged({2, 3, 4}, {24, 4, 1})) << "every other batch";
  EXPECT_FALSE(merged({3, 2, 4}, {4, 12, 1})) << "batches and rows exchanged";
  EXPECT_FALSE(merged({2, 3, 4}, {0, 4, 1})) << "one batch, seen twice";
  auto single = merged({1, 3, 1, 4}, {99, 4, 77, 1});
  ASSERT_TRUE(single) << "the stride of a dimension of one does not matter";
  EXPECT_THAT(single->sizes, ElementsAre(3, 4));
  EXPECT_THAT(single->strides, ElementsAre(4, 1));
}

TEST(Lower, WeightsAreStoredOnceInOrderOfUse) {
  auto module = parse(R"(module @m {
    param @unused : f32[9]
    param @same_a : f32[4]
    param @same_b : f32[4]
    param @same_as_f16 : f16[8]
    param @w : f32[8]
    graph @g(%x: f32[4]) {
      %w = get_attr @w : f32[8]
      %0, %1 = aten.chunk(%w) {chunks=2} : f32[4], f32[4]
      %2 = aten.add(%x, %1) : f32[4]
      %b = get_attr @same_b : f32[4]
      %3 = aten.add(%2, %b) : f32[4]
      %a = get_attr @same_a : f32[4]
      %4 = aten.add(%3, %a) : f32[4]
      %h = get_attr @same_as_f16 : f16[8]
      output %4, %h
    }
    graph @again(%x: f32[4]) {
      %a = get_attr @same_a : f32[4]
      %0 = aten.add(%x, %a) : f32[4]
      output %0
    }
  })");
  auto plan = lowerAll(*module);
  ASSERT_TRUE(plan) << plan.status().message();
  std::vector<std::string> names;
  for (const Weight &weight : plan->plan.weights)
    names.push_back(weight.name);
  // Equal bytes with another dtype are another weight.
  EXPECT_THAT(names, ElementsAre("w", "same_b", "same_as_f16"));
  ASSERT_EQ(plan->weights.size(), 3u);
  EXPECT_EQ(plan->weights[0]->bytes().size(), 32u);
}

TEST(Lower, BucketsOfOneEntryAndLocations) {
  auto module = parse(R"(module @m {
    graph @a(%x: f32[1]) {
      %0 = aten.neg(%x) : f32[1] loc("model.py":7 "visual")
      %1 = aten.exp(%0) : f32[1] loc("model.py":7 "visual")
      output %1
    }
    graph @b(%x: f32[2]) {
      %0 = aten.neg(%x) : f32[2] loc("model.py":9 "visual")
      %1 = aten.exp(%0) : f32[2] loc("model.py":9 "text")
      output %1
    }
  })");
  std::vector<EntryBucket> buckets = {{"encode", module->findGraph("a")},
                                      {"other", module->findGraph("a")},
                                      {"encode", module->findGraph("b")}};
  ir::Diagnostics diagnostics;
  auto plan = lower(buckets, DeviceKind::Cpu, diagnostics);
  ASSERT_TRUE(plan) << plan.status().message();
  ASSERT_EQ(plan->plan.entries.size(), 2u);
  EXPECT_EQ(plan->plan.entries[0].buckets.size(), 2u);
  EXPECT_THAT(plan->plan.locations, ElementsAre(SourceLocation{"model.py", 7, "visual"},
                                                SourceLocation{"model.py", 9, "visual"},
                                                SourceLocation{"model.py", 9, "text"}));
  EXPECT_EQ(plan->plan.entries[0].buckets[1].records[0].location, LocationId{1});
}

TEST(Lower, BucketsOfOneEntryHaveTheSameOutputs) {
  auto module = parse(R"(module @m {
    graph @a(%x: f32[1]) {
      %0 = aten.neg(%x) : f32[1]
      output %0
    }
    graph @b(%x: f32[2]) {
      %0 = aten.neg(%x) : f32[2]
      output %0, %x loc("model.py":9 "")
    }
    graph @c(%x: f32[3]) {
      %0 = aten.gt(%x, 0) : bool[3]
      output %0
    }
  })");
  std::vector<EntryBucket> buckets;
  for (const char *name : {"a", "b", "c"})
    buckets.push_back({"encode", module->findGraph(name)});
  ir::Diagnostics diagnostics;
  auto plan = lower(buckets, DeviceKind::Cpu, diagnostics);
  EXPECT_EQ(plan.status().code(), Code::Unsupported);
  EXPECT_THAT(plan.status().message(),
              AllOf(HasSubstr("model.py:9: error: for these input shapes the method returns"),
                    HasSubstr("for those of another bucket (output: f32); buckets of one plan"),
                    HasSubstr("returns (output: bool)")));
}

TEST(Lower, ScratchMemoryIsReused) {
  std::string text = "graph @g(%x: f32[64]) {\n%0 = aten.neg(%x) : f32[64]\n";
  for (int i = 1; i < 20; ++i)
    text += "%" + std::to_string(i) + " = aten.neg(%" + std::to_string(i - 1) + ") : f32[64]\n";
  auto plan = lowerAll(*parse(text + "output %19\n}"));
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_EQ(plan->plan.entries[0].buckets[0].arenaBytes, 2 * 256u);
}

TEST(Lower, ScratchMemoryIsReusedOnlyIfItMay) {
  auto module = parse("graph @g(%x: f32[64]) {\n%0 = aten.neg(%x) : f32[64]\n%1 = aten.neg(%0) : "
                      "f32[64]\n%2 = aten.neg(%1) : f32[64]\n%3 = aten.neg(%2) : f32[64]\noutput "
                      "%3\n}");
  LowerOptions options = DeviceKind::Cpu;
  options.reusesMemory = false;
  auto plan = lowerAll(*module, options);
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_EQ(plan->plan.entries[0].buckets[0].arenaBytes, 3 * 256u);
}

TEST(Lower, ColumnsThatIndexDifferentEmbeddingsHaveBoundsOfTheirOwn) {
  auto plan = lowerAll(*parse(R"(graph @g(%w: f32[9,4], %v: f32[7,4], %i: i64[2,5]) {
    %0 = aten.select(%i) {dim=1, index=0} : i64[2][5]
    %1 = aten.embedding(%w, %0) : f32[2,4]
    %2 = aten.slice(%i) {dim=1, start=3} : i64[2,2][5,1]
    %3 = aten.embedding(%v, %2) : f32[2,2,4]
    %4 = aten.clone(%2) : i64[2,2]
    %5 = aten.embedding(%w, %4) : f32[2,2,4]
    %6 = aten.select(%4) {dim=1, index=0} : i64[2][2]
    %7 = aten.embedding(%v, %6) : f32[2,4]
    output %1, %3, %5, %7
  })"));
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(plan->plan.entries[0].buckets[0].inputs[2].indexBounds,
              testing::ElementsAre(IndexBound{9, 0, {2}, {5}}, IndexBound{7, 3, {2, 2}, {5, 1}}))
      << "part of a copy has no bound";
}

TEST(Lower, AnInputThatIndexesAnEmbeddingIsBounded) {
  auto plan = lowerAll(*parse(R"(graph @g(%w: f32[9,4], %v: f32[7,4], %i: i32[2,5], %j: i32[2,5]) {
    %0 = aten.to(%i) {dtype=i64} : i64[2,5]
    %1 = aten.embedding(%w, %0) : f32[2,5,4]
    %2 = aten.embedding(%v, %i) : f32[2,5,4]
    %3 = aten.to(%j) {dtype=i64} : i64[2,5]
    %4 = aten.transpose(%3) {dim0=0, dim1=1} : i64[5,2][1,5]
    %5 = aten.embedding(%w, %4) : f32[5,2,4]
    output %1, %2, %5
  })"));
  ASSERT_TRUE(plan) << plan.status().message();
  const std::vector<IoTensor> &inputs = plan->plan.entries[0].buckets[0].inputs;
  const auto below = [](int64_t bound) {
    return testing::ElementsAre(IndexBound{bound, 0, {2, 5}, {5, 1}});
  };
  EXPECT_THAT(inputs[2].indexBounds, below(7)) << "of the two embeddings, the smaller";
  EXPECT_THAT(inputs[3].indexBounds, below(9));
  EXPECT_THAT(inputs[0].indexBounds, testing::IsEmpty());
}

/// The bounds of the input called `name` of a graph with these inputs and lines, for both targets.
void expectBounds(const std::string &inputs, const std::string &lines, const std::string &name,
                  const std::vector<IndexBound> &bounds) {
  for (const DeviceKind target : {DeviceKind::Cpu, DeviceKind::Cuda}) {
    std::string text = "graph @g(" + inputs + ") {\n" + lines + "\n}";
    if (target == DeviceKind::Cuda) // Each type ends with the device.
      text =
          std::regex_replace(text, std::regex(R"(: (\w+\[[0-9,]*\](\[[0-9,]*\])?))"), ": $1@cuda");
    auto plan = lowerAll(*parse(text), target);
    ASSERT_TRUE(plan) << plan.status().message();
    const std::vector<IoTensor> &all = plan->plan.entries[0].buckets[0].inputs;
    const auto input = std::ranges::find(all, name, &IoTensor::name);
    ASSERT_NE(input, all.end());
    EXPECT_EQ(input->indexBounds, bounds) << text;
  }
}

/// LibTorch's limits: negative indices count from the end for index and index_put only.
TEST(Lower, EachOpThatReadsIndicesBoundsThem) {
  const std::string inputs = "%x: f32[4,7], %i: i64[2,3], %s: f32[2,3], %k: i64[3], %v: f32[3,7]";
  const std::vector<IndexBound> both = {{7, 0, {2, 3}, {3, 1}}}, one = {{4, 0, {3}, {1}}};
  IndexBound wraps = one[0];
  wraps.least = -4;
  const auto expectBoth = [&](const std::string &call) {
    expectBounds(inputs, call + "\noutput %0", "i", both);
  };
  expectBoth("%0 = aten.gather(%x, %i) {dim=-1} : f32[2,3]");
  expectBoth("%0 = aten.scatter(%x, %i, %s) {dim=1} : f32[4,7]");
  expectBoth("%0 = aten.scatter(%x, %i, 2.0) {dim=1} : f32[4,7]");
  expectBoth("%0 = aten.scatter_add(%x, %i, %s) {dim=1} : f32[4,7]");
  expectBoth("%0 = aten.scatter_reduce(%x, %i, %s) {dim=1, reduce=\"sum\"} : f32[4,7]");
  expectBounds(inputs, "%0 = aten.index_select(%x, %k) {dim=0} : f32[3,7]\noutput %0", "k", one);
  expectBounds(inputs, "%0 = cgc.embedding_backward(%v, %k) {num_weights=4} : f32[4,7]\noutput %0",
               "k", one);
  expectBounds(inputs, "%0 = aten.index(%x, [%k]) : f32[3,7]\noutput %0", "k", {wraps});
  expectBounds(inputs, "%0 = aten.index_put(%x, [%k], %v) : f32[4,7]\noutput %0", "k", {wraps});
  wraps.least = -7;
  wraps.end = 7;
  expectBounds(inputs, "%0 = aten.index(%x, [none, %k]) : f32[4,3]\noutput %0", "k", {wraps});
  // A number that is added first moves the range.
  IndexBound shifted = one[0];
  shifted.least = 1;
  shifted.end = 5;
  expectBounds(inputs,
               "%0 = aten.sub(%k, 1) : i64[3]\n"
               "%1 = aten.index_select(%x, %0) {dim=0} : f32[3,7]\noutput %1",
               "k", {shifted});
  shifted.least = -6;
  shifted.end = 2;
  expectBounds(inputs,
               "%0 = aten.add(3, %k) : i64[3]\n%1 = aten.sub(%0, 1) : i64[3]\n"
               "%2 = aten.index(%x, [%1]) : f32[3,7]\noutput %2",
               "k", {shifted});
  for (const char *other :
       {"%0 = aten.mul(%k, 2) : i64[3]", "%0 = aten.sub(%k, 1) {alpha=2} : i64[3]",
        "%0 = aten.add(%k, %k) : i64[3]"})
    expectBounds(inputs,
                 other +
                     std::string("\n%1 = aten.index_select(%x, %0) {dim=0} : f32[3,7]\noutput %1"),
                 "k", {});
  // What one op allows and another one does not is refused.
  expectBounds(inputs,
               "%0 = aten.index(%x, [none, %k]) : f32[4,3]\n"
               "%1 = aten.index_select(%x, %k) {dim=0} : f32[3,7]\noutput %0, %1",
               "k", one);
}

/// The picked classes of a loss: those that it ignores are replaced by class 0.
TEST(Lower, AReplacedValueIsNoIndex) {
  const std::string inputs = "%x: f32[3,5], %i: i64[3], %n: i32[3], %f: f32[3], %b: bool[3]";
  const auto expectBound = [&](const std::string &classes, const char *name,
                               const std::vector<IndexBound> &bounds) {
    expectBounds(inputs, classes + R"(
      %u = aten.unsqueeze(%c) {dim=1} : i64[3,1]
      %g = aten.gather(%x, %u) {dim=1} : f32[3,1]
      output %g)",
                 name, bounds);
  };
  const IndexBound bound{5, 0, {3}, {1}};
  IndexBound exempt = bound;
  exempt.exempt = -100;
  expectBound(R"(%m = aten.ne(%i, -100) : bool[3]
      %c = aten.where(%m, %i, 0) : i64[3])",
              "i", {exempt});
  expectBound(R"(%m = aten.eq(%i, -100) : bool[3]
      %c = aten.where(%m, 0, %i) : i64[3])",
              "i", {exempt});
  expectBound(R"(%m = aten.eq(%i, -100) : bool[3]
      %c = aten.masked_fill(%i, %m, 0) : i64[3])",
              "i", {exempt});
  expectBound(R"(%w = aten.to(%n) {dtype=i64} : i64[3]
      %m = aten.ne(%w, -100) : bool[3]
      %c = aten.where(%m, %w, 0) : i64[3])",
              "n", {exempt});
  // Classes from 1 on: the replaced value is that of the input.
  IndexBound shifted{6, 0, {3}, {1}, 1, 0};
  expectBound(R"(%k = aten.sub(%i, 1) : i64[3]
      %m = aten.ne(%k, -1) : bool[3]
      %c = aten.where(%m, %k, 0) : i64[3])",
              "i", {shifted});
  // Not the replaced value, not the value that was compared, or not the same comparison.
  for (const char *classes : {R"(%m = aten.ne(%i, -100) : bool[3]
      %c = aten.where(%m, %i, 1) : i64[3])",
                              R"(%m = aten.eq(%i, -100) : bool[3]
      %c = aten.where(%m, %i, 0) : i64[3])",
                              R"(%m = aten.gt(%i, -100) : bool[3]
      %c = aten.where(%m, %i, 0) : i64[3])",
                              R"(%m = aten.ne(%n, -100) : bool[3]
      %c = aten.where(%m, %i, 0) : i64[3])",
                              // Two values.
                              R"(%m = aten.ne(%i, -100) : bool[3]
      %1 = aten.where(%m, %i, 0) : i64[3]
      %2 = aten.ne(%1, 9) : bool[3]
      %c = aten.where(%2, %1, 0) : i64[3])",
                              // 300 becomes 44.
                              R"(%1 = aten.to(%i) {dtype=u8} : u8[3]
      %c = aten.to(%1) {dtype=i64} : i64[3])"})
    expectBound(classes, "i", {});
  expectBound("%c = aten.to(%f) {dtype=i64} : i64[3]", "f", {});
  expectBound("%c = aten.to(%b) {dtype=i64} : i64[3]", "b", {});
}

TEST(Lower, AnOverwrittenCopyOfAnInputIsNotBounded) {
  expectBounds("%x: f32[9,4], %i: i64[3], %k: i64[1]", R"(
    %0 = aten.slice_scatter(%i, %k) {dim=0, start=0, end=1} : i64[3]
    %1 = aten.embedding(%x, %0) : f32[3,4]
    output %1)",
               "i", {});
}

TEST(Lower, AFallbackIsCalledByItsNameAndOverload) {
  auto plan = lowerAll(*parse(R"(graph @g(%x: f32[3]) {
    %0 = aten.fallback "aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor" (%x, 2.0) : f32[3]
    output %0
  })"));
  ASSERT_TRUE(plan) << plan.status().message();
  const auto &call = std::get<AtenCall>(plan->plan.entries[0].buckets[0].records[0].op);
  EXPECT_EQ(call.op, "aten::remainder");
  EXPECT_EQ(call.overload, "Scalar");
}

TEST(Lower, NamesAllThatPassesHaveLeft) {
  auto module = parse(R"(module @m {
    param @w : f32[2]
    graph @g(%x: f32[2]) {
      %0 = aten.size(%x) : dynamic loc("model.py":3 "visual")
      %1 = aten.relu(%x) : dynamic loc("model.py":4 "visual")
      %w = get_attr @w : f32[2]
      output %1, %w
    }
    graph @h(%x: f32[2]) {
      %0 = aten.relu_(%x) : f32[2]
      output %0
    }
  })");
  auto plan = lowerAll(*module);
  EXPECT_EQ(plan.status().code(), Code::Usage); // The pipeline is at fault, not the model.
  EXPECT_THAT(plan.status().message(), AllOf(HasSubstr("host op"), HasSubstr("model.py"),
                                             HasSubstr("type of %1"), HasSubstr("in-place")));
}

TEST(Lower, AStridedInputIsNamed) {
  auto plan = lowerAll(*parse("graph @g(%x: f32[2,3][1,2]) {\n %0 = aten.neg(%x) : "
                              "f32[2,3]\n output %0\n}"));
  EXPECT_EQ(plan.status().code(), Code::Unsupported);
  EXPECT_THAT(plan.status().message(), HasSubstr("input 'x' is strided"));
}

TEST(Lower, AParameterWithoutDataIsNamed) {
  auto module = parse(R"(module @m {
    param @proj : f32[2]
    graph @g() {
      %w = get_attr @proj : f32[2]
      output %w
    }
  })",
                      /*withData=*/false);
  auto plan = lowerAll(*module);
  EXPECT_EQ(plan.status().code(), Code::Unsupported);
  EXPECT_THAT(plan.status().message(), AllOf(HasSubstr("'proj'"), HasSubstr("no data")));
}

TEST(Lower, IsDeterministic) {
  auto module = parse(R"(graph @g(%x: f32[8,8], %w: f32[8,8]) {
    %0 = aten.linear(%x, %w) : f32[8,8]
    %1 = aten.add(%0, %x) : f32[8,8]
    %2 = aten.softmax(%1) {dim=-1, dtype=f64} : f64[8,8]
    output %2
  })");
  auto a = lowerAll(*module), b = lowerAll(*module);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->plan, b->plan);
}

TEST(Lower, AnOutputNeedsANameThatAPlanCanHold) {
  auto module = parse("graph @g(%x: f32[2]) {\n %0 = aten.relu(%x) : f32[2]\n output %0\n}");
  for (const std::string &name : {std::string("a\nb"), std::string(), std::string(5000, 'x')}) {
    module->findGraph("g")->setOutputNames({name});
    const auto plan = lowerAll(*module);
    EXPECT_EQ(plan.status().code(), Code::Unsupported);
    EXPECT_THAT(plan.status().message(), HasSubstr("cannot be a name"));
  }
}

} // namespace
} // namespace cgc::backend

// Tests of lower(): views without records, where outputs are written, weights, locations, buckets,
// and errors.
#include "backend/backend.h"

#include "backend/bucket_builder.h"
#include "ir/op_def.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "runtime/kernels/activation.h"
#include "runtime/kernels/attention_whole.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/product.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::backend {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Parses, verifies, and gives the parameters bytes: those whose name begins with "same" are equal.
std::unique_ptr<ir::Module> parse(const std::string &text, bool withData = true) {
  ir::Diagnostics diagnostics;
  auto module = ir::parseModule(text, "test", diagnostics);
  EXPECT_TRUE(module && ir::verify(*module, diagnostics)) << diagnostics.render();
  if (module && withData) {
    uint8_t next = 1;
    for (const ir::Parameter &parameter : module->parameters()) {
      std::byte fill{parameter.name.starts_with("same") ? uint8_t{0} : next++};
      std::vector<std::byte> bytes(parameter.type.numBytes(), fill);
      module->setParameterData(parameter.name, ir::TensorData::copyOf(parameter.type, bytes));
    }
  }
  return module;
}

Result<CompiledPlan> lowerAll(const ir::Module &module, LowerOptions options = DeviceKind::Cpu) {
  std::vector<EntryBucket> buckets;
  for (const auto &graph : module.graphs())
    buckets.push_back({graph->name(), graph.get()});
  ir::Diagnostics diagnostics;
  auto plan = lower(buckets, options, diagnostics);
  if (plan) {
    Status valid = validate(plan->plan);
    EXPECT_TRUE(valid.isOk()) << valid.message();
  }
  return plan;
}

std::vector<std::string> recordNames(const Bucket &bucket) {
  std::vector<std::string> names;
  for (const LaunchRecord &record : bucket.records)
    names.push_back(recordName(record));
  return names;
}

/// Where record `i` writes its first result.
Slot written(const Bucket &bucket, size_t i) {
  return bucket.tensors[static_cast<uint32_t>(recordWrites(bucket.records[i])[0])].slot;
}
/// Where record `i` reads its first argument.
Slot read(const Bucket &bucket, size_t i) {
  return bucket.tensors[static_cast<uint32_t>(recordReads(bucket.records[i])[0])].slot;
}

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

TEST(Lower, OutputsAreCopiedOnlyWhereTheyMustBe) {
  auto module = parse(R"(graph @g(%x: f32[2,3]) {
    %0 = aten.neg(%x) : f32[2,3]
    %1 = aten.view(%0) {size=[3,2]} : f32[3,2]
    %2 = aten.transpose(%0) {dim0=0, dim1=1} : f32[3,2][1,3]
    output %1, %0, %2, %x
  })");
  auto plan = lowerAll(*module);
  ASSERT_TRUE(plan) << plan.status().message();
  // %0 is written as output 0, in the shape of %1; the strided view needs a copy that can stride.
  EXPECT_THAT(recordNames(plan->plan.entries[0].buckets[0]),
              ElementsAre("aten::neg.out", "memcpy", "aten::copy_", "memcpy"));
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

/// The record computes more than the output takes.
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
  // Equal bytes of another dtype are another weight.
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

TEST(Lower, ProductsOfF32RoundToTf32OnlyIfTheyMay) {
  auto module = parse(R"(graph @g(%x: f32[6,8]@cuda, %w: f32[5,8]@cuda) {
    %0 = aten.linear(%x, %w) : f32[6,5]@cuda
    output %0
  })");
  auto half = parse(R"(graph @g(%x: f16[6,8]@cuda, %w: f16[5,8]@cuda) {
    %0 = aten.linear(%x, %w) : f16[6,5]@cuda
    output %0
  })");
  LowerOptions options = DeviceKind::Cuda;
  const auto rounds = [&](const ir::Module &of) {
    auto plan = lowerAll(of, options);
    EXPECT_TRUE(plan) << plan.status().message();
    const Bucket &bucket = plan->plan.entries[0].buckets[0];
    return productCall(std::get<LibraryCall>(bucket.records[0].op), bucket.tensors)->tf32;
  };
  EXPECT_FALSE(rounds(*module));
  options.tf32 = true;
  EXPECT_TRUE(rounds(*module));
  EXPECT_FALSE(rounds(*half));
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
  EXPECT_EQ(plan->plan.entries[0].buckets[0].inputs[2].upperBound, 7);
  EXPECT_EQ(plan->plan.entries[0].buckets[0].inputs[3].upperBound, 9);
  EXPECT_EQ(plan->plan.entries[0].buckets[0].inputs[0].upperBound, 0);
}

TEST(Lower, LayerNormIsAKernelOnCudaOnly) {
  auto module = parse(R"(graph @g(%x: f16[2,3,8]@cuda, %w: f16[8]@cuda) {
    %0 = aten.layer_norm(%x, %w) {normalized_shape=[8]} : f16[2,3,8]@cuda
    %1 = aten.transpose(%0) {dim0=1, dim1=2} : f16[2,8,3][24,1,8]@cuda
    %2 = aten.layer_norm(%1) {normalized_shape=[3]} : f16[2,8,3]@cuda
    output %2
  })");
  auto cuda = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(cuda) << cuda.status().message();
  // The second one's input is strided.
  const Bucket &bucket = cuda->plan.entries[0].buckets[0];
  EXPECT_THAT(recordNames(bucket), ElementsAre("kernel layer_norm_f16", "aten::layer_norm"));
  const auto &launch = std::get<KernelLaunch>(bucket.records[0].op);
  EXPECT_EQ(launch.grid[0], 2u); // Four rows a block.
  EXPECT_THAT(launch.ints, ElementsAre(6, 8));
  EXPECT_EQ(launch.reads[2], kNoTensor);
}

/// The records of one graph for cuda.
std::vector<std::string> cudaRecords(const std::string &text) {
  auto plan = lowerAll(*parse(text), DeviceKind::Cuda);
  EXPECT_TRUE(plan) << plan.status().message();
  return plan ? recordNames(plan->plan.entries[0].buckets[0]) : std::vector<std::string>();
}

TEST(Lower, PointwiseOpsAreOneKernelOnCuda) {
  auto module = parse(R"(graph @g(%x: f16[2,3,8]@cuda, %b: f16[8]@cuda, %i: i64[8]@cuda) {
    %0 = aten.add(%x, %b) : f16[2,3,8]@cuda
    %1 = aten.gelu(%0) {approximate="tanh"} : f16[2,3,8]@cuda
    %2 = aten.sub(1, %1) : f16[2,3,8]@cuda
    %3 = aten.rsub(%2, 2.5) : f16[2,3,8]@cuda
    %4 = aten.add(%3, 3) {alpha=2} : f16[2,3,8]@cuda
    %5 = cgc.quick_gelu(%4) : f16[2,3,8]@cuda
    %6 = aten.div(%5, %x) : f16[2,3,8]@cuda
    %7 = aten.transpose(%6) {dim0=1, dim1=2} : f16[2,8,3][24,1,8]@cuda
    %8 = aten.silu(%7) : f16[2,8,3]@cuda
    %9 = aten.pow(%8, 2) : f16[2,8,3]@cuda
    output %9
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  using enum ElementwiseOp;
  const std::pair<ElementwiseOp, double> expected[] = {
      {Add, 0},       {GeluTanh, 0}, {ReverseSub, 1}, {ReverseSub, 2.5}, {Add, 6},
      {QuickGelu, 0}, {Div, 0},      {Silu, 0},       {Pow, 2}};
  ASSERT_EQ(bucket.records.size(), std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ(recordName(bucket.records[i]), "kernel elementwise_f16");
    const auto &launch = std::get<KernelLaunch>(bucket.records[i].op);
    EXPECT_THAT(launch.ints, ElementsAre(int64_t(expected[i].first))) << i;
    EXPECT_THAT(launch.floats, ElementsAre(expected[i].second)) << i;
    EXPECT_EQ(launch.reads[1] == kNoTensor, i != 0 && i != 6) << i;
  }
}

TEST(Lower, PointwiseOpsThatNoKernelComputesStayWithLibTorch) {
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: f32[2,4]@cuda, %y: f32[2,4]@cuda, %i: i64[4]@cuda) {
    %0 = aten.add(%x, %y) {alpha=2} : f32[2,4]@cuda
    %1 = aten.add(%i, 1) : i64[4]@cuda
    %2 = aten.add(%x, %i) : f32[2,4]@cuda
    %3 = aten.div(%x, 2) {rounding_mode="floor"} : f32[2,4]@cuda
    %4 = aten.pow(2, %x) : f32[2,4]@cuda
    %5 = aten.log(%x) : f32[2,4]@cuda
    output %0, %1, %2, %3, %4, %5
  })"),
              ElementsAre("aten::add.out", "aten::add.out", "aten::add.out", "aten::div.out_mode",
                          "aten::pow.Scalar_out", "aten::log.out"));
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: f32[0,4]@cuda, %y: f64[4]@cuda) {
    %0 = aten.neg(%x) : f32[0,4]@cuda
    %1 = aten.neg(%y) : f64[4]@cuda
    output %0, %1
  })"),
              ElementsAre("aten::neg.out", "aten::neg.out"));
}

TEST(Lower, CopiesAreKernelsOnCuda) {
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: f32[2,3,4]@cuda, %d: f64[4]@cuda) {
    %0 = aten.transpose(%x) {dim0=0, dim1=1} : f32[3,2,4][4,12,1]@cuda
    %1 = aten.contiguous(%0) : f32[3,2,4]@cuda
    %2 = aten.to(%x) {dtype=f16} : f16[2,3,4]@cuda
    %3 = aten.clone(%x) : f32[2,3,4]@cuda
    %4 = aten.to(%d) {dtype=f32} : f32[4]@cuda
    %5 = aten.cat([%0, %0]) {dim=1} : f32[3,4,4]@cuda
    %6 = aten.stack([%x, %x]) {dim=0} : f32[2,2,3,4]@cuda
    output %1, %2, %3, %4, %5, %6
  })"),
              ElementsAre("kernel copy", "kernel copy", "memcpy", "aten::copy_", "kernel copy",
                          "kernel copy", "memcpy", "memcpy"));
}

TEST(Lower, ConcatenatedPartsLieOneAfterTheOther) {
  auto module = parse(R"(graph @g(%x: f32[2,3]@cuda, %y: f32[2,1]@cuda, %z: f32[2,4]@cuda) {
    %0 = aten.cat([%x, %y, %z]) {dim=-1} : f32[2,8]@cuda
    output %0
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  ASSERT_EQ(bucket.records.size(), 3u);
  EXPECT_EQ(written(bucket, 0).offset, 0u);
  EXPECT_EQ(written(bucket, 1).offset, 12u);
  EXPECT_EQ(written(bucket, 2).offset, 16u);
}

TEST(Lower, ReductionsOfTheLastDimensionAreKernelsOnCuda) {
  EXPECT_THAT(cudaRecords(R"(graph @g(%x: f16[2,3,8]@cuda, %i: i64[2,8]@cuda) {
    %0 = aten.softmax(%x) {dim=-1} : f16[2,3,8]@cuda
    %1 = aten.softmax(%x) {dim=2, dtype=f32} : f32[2,3,8]@cuda
    %2 = aten.softmax(%x) {dim=1} : f16[2,3,8]@cuda
    %3 = aten.argmax(%i) {dim=1} : i64[2]@cuda
    %4 = aten.argmax(%x) : i64[]@cuda
    %5 = aten.argmax(%i) {dim=0} : i64[8]@cuda
    output %0, %1, %2, %3, %4, %5
  })"),
              ElementsAre("kernel softmax_f16", "kernel copy", "kernel softmax_f32",
                          "aten::_softmax.out", "kernel argmax_i64", "kernel argmax_f16",
                          "aten::argmax.out"));
}

TEST(Lower, FusedOpsAreOneKernelOnCuda) {
  const std::string inputs =
      "%m: f16[2,3,8,8]@cuda, %p: f16[2,4,16]@cuda, %t: f16[16]@cuda, %q: f16[5,16]@cuda, "
      "%i: i64[2,5]@cuda, %w: f16[9,16]@cuda, %j: i32[2]@cuda";
  auto module = parse("graph @g(" + inputs + R"() {
    %0 = cgc.patches(%m) {patch=[4,4], columns=64} : f16[2,4,64]@cuda
    %1 = cgc.tokens(%p, %t, %q) : f16[2,5,16]@cuda
    %2 = cgc.embedding(%i, %w, %q) : f16[2,5,16]@cuda
    %3 = aten.embedding(%w, %i) : f16[2,5,16]@cuda
    %4, %5 = cgc.add_layer_norm(%1, %2, %t) : f16[2,5,16]@cuda, f16[2,5,16]@cuda
    %6 = cgc.rows(%5, %j) : f16[2,16]@cuda
    %7 = cgc.normalize(%6) {eps=1e-12} : f16[2,16]@cuda
    output %0, %3, %4, %7
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  EXPECT_THAT(recordNames(bucket),
              ElementsAre("kernel patches_f16", "kernel tokens_f16", "kernel embedding_f16",
                          "kernel embedding_f16", "kernel add_layer_norm_f16", "kernel rows_f16",
                          "kernel normalize_f16"));
  EXPECT_EQ(bucket.inputs[4].upperBound, 9);
  EXPECT_EQ(bucket.inputs[6].upperBound, 5);
  EXPECT_EQ(std::get<KernelLaunch>(bucket.records[3].op).reads[2], kNoTensor);
  EXPECT_THAT(std::get<KernelLaunch>(bucket.records[4].op).ints, ElementsAre(10, 16, 10));
}

TEST(Lower, LayerNormByF32ParametersIsOneKernelOnCuda) {
  auto module = parse(R"(graph @g(%x: f16[2,3,8]@cuda, %a: f16[3,8]@cuda, %w: f32[8]@cuda) {
    %0, %1 = cgc.add_layer_norm(%x, none, %w) : f16[2,3,8]@cuda, f16[2,3,8]@cuda
    %2, %3 = cgc.add_layer_norm(%0, %a, none, %w) : f16[2,3,8]@cuda, f16[2,3,8]@cuda
    output %1, %3
  })");
  auto plan = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(plan) << plan.status().message();
  const Bucket &bucket = plan->plan.entries[0].buckets[0];
  EXPECT_THAT(recordNames(bucket),
              ElementsAre("kernel layer_norm_by_f32_f16", "kernel add_layer_norm_by_f32_f16"));
  // Without an addend the sum is the input itself.
  EXPECT_EQ(read(bucket, 1), (Slot{BufferKind::Input, 0, 0}));
}

/// cgc.norm_linear of so many rows of 64 on cuda.
Result<CompiledPlan> lowerNormLinear(int64_t rows, Arch arch = Arch::Sm90a,
                                     const std::string &dtype = "f16") {
  const std::string x = dtype + "[" + std::to_string(rows) + ",64]@cuda",
                    y = dtype + "[" + std::to_string(rows) + ",24]@cuda";
  const auto module =
      parse("module @m {\n  param @w : " + dtype + "[24,64]@cuda\n  param @b : " + dtype +
            "[24]@cuda\n  param @s : f32[24]@cuda\n  param @p : " + dtype +
            "[64,64]@cuda\n  graph @g(%r: " + x + ") {\n    %p = get_attr @p : " + dtype +
            "[64,64]@cuda\n    %x = cgc.linear(%r, %p) {activation=\"none\"} : " + x +
            "\n    %w = get_attr @w : " + dtype + "[24,64]@cuda\n    %b = get_attr @b : " + dtype +
            "[24]@cuda\n    %s = get_attr @s : f32[24]@cuda\n" +
            "    %0 = cgc.norm_linear(%x, %w, %b, %s) {eps=0.001, "
            "activation=\"gelu\"} : " +
            y + "\n    output %0\n  }\n}");
  return lowerAll(*module, {DeviceKind::Cuda, arch});
}

TEST(Lower, NormLinearIsOneKernelForFewTokens) {
  for (const std::string dtype : {"f16", "bf16"})
    for (const int64_t rows : {1, 77, 1536}) {
      auto plan = lowerNormLinear(rows, Arch::Sm90a, dtype);
      ASSERT_TRUE(plan) << plan.status().message();
      const Bucket &bucket = plan->plan.entries[0].buckets[0];
      ASSERT_THAT(recordNames(bucket),
                  ElementsAre(testing::StartsWith("kernel product_" + dtype + "_"),
                              testing::StartsWith("kernel product_norm_" + dtype + "_")));
      const auto &first = std::get<KernelLaunch>(bucket.records[0].op);
      const auto &launch = std::get<KernelLaunch>(bucket.records[1].op);
      const auto tile = std::ranges::find_if(productNormTiles(), [&](const ProductTile &tile) {
        return launch.kernel.ends_with(tile.name);
      });
      ASSERT_NE(tile, productNormTiles().end());
      EXPECT_TRUE(std::ranges::equal(launch.grid, tile->grid(rows, 24, 132)));
      EXPECT_EQ(launch.block[0], tile->normThreads());
      EXPECT_GE(launch.sharedBytes, tile->sharedBytes(2));
      ASSERT_EQ(launch.reads.size(), 6u);
      // The product before it writes the moments of its rows.
      EXPECT_EQ(launch.reads[5], first.writes[1]);
      EXPECT_THAT(bucket.tensors[static_cast<uint32_t>(launch.reads[5])].sizes,
                  ElementsAre(rows, 1, 2));
      EXPECT_EQ(launch.writes[1], kNoTensor);
      EXPECT_EQ(launch.reads[3], kNoTensor); // A residual.
      EXPECT_EQ(bucket.tensors[static_cast<uint32_t>(launch.reads[4])].dtype, DType::F32);
      EXPECT_THAT(launch.ints, ElementsAre(rows, 24, 64, int64_t(Activation::Gelu)));
      EXPECT_THAT(launch.floats, ElementsAre(0.001));
    }
}

TEST(Lower, NormLinearIsALayerNormAndAProductElsewhere) {
  auto many = lowerNormLinear(1537);
  ASSERT_TRUE(many) << many.status().message();
  const Bucket &bucket = many->plan.entries[0].buckets[0];
  EXPECT_THAT(recordNames(bucket),
              ElementsAre(testing::StartsWith("kernel product_f16_"), "kernel layer_norm_f16",
                          testing::StartsWith("kernel product_f16_")));
  EXPECT_EQ(std::get<KernelLaunch>(bucket.records[0].op).writes[1], kNoTensor);
  // The weights of the plan hold scale and shift already.
  EXPECT_THAT(std::get<KernelLaunch>(bucket.records[1].op).reads,
              ElementsAre(testing::Ne(kNoTensor), kNoTensor, kNoTensor));
  EXPECT_THAT(std::get<KernelLaunch>(bucket.records[1].op).floats, ElementsAre(0.001));

  auto portable = lowerNormLinear(77, Arch::Sm80);
  ASSERT_TRUE(portable) << portable.status().message();
  EXPECT_THAT(recordNames(portable->plan.entries[0].buckets[0]),
              ElementsAre("cublaslt.matmul", "kernel layer_norm_f16", "cublaslt.matmul",
                          "kernel elementwise_f16"));
}

/// A graph with these inputs and lines, for Hopper.
Result<CompiledPlan> lowerForHopper(const std::string &inputs, const std::string &lines) {
  return lowerAll(*parse("graph @g(" + inputs + ") {\n" + lines + "\n}"),
                  {DeviceKind::Cuda, Arch::Sm90a});
}

/// Which attention kernel takes heads of 64 columns on a GPU of 132 SMs, and how it cuts the work.
TEST(Lower, AttentionHasTheKernelOfItsSizes) {
  struct Row {
    int64_t batch, heads, queries, keys;
    bool causal;
    std::string kernel;
    uint32_t blocks, threads;
    int64_t tiles, stages; ///< Of attention_whole.
  };
  const Row kRows[] = {
      // Text of ViT-L-14: a tile for each block while SMs are idle, then two blocks on an SM.
      {1, 12, 77, 77, true, "whole_f16_80", 24, 128, 1, 2},
      {5, 12, 77, 77, true, "whole_f16_80", 120, 128, 1, 2},
      {6, 12, 77, 77, true, "whole_f16_80", 72, 256, 2, 1},
      {16, 12, 77, 77, true, "whole_f16_80", 192, 256, 2, 1},
      {64, 12, 128, 128, false, "whole_f16_128", 768, 256, 2, 1},
      // More tiles are one block on an SM.
      {64, 12, 129, 100, false, "whole_f16_128", 768, 256, 2, 1},
      {64, 12, 193, 100, false, "whole_f16_128", 132, 384, 3, 2},
      // Images: halves of the keys, then whole heads, their last query shared.
      {1, 16, 257, 257, false, "halves_f16", 80, 256, 0, 0},
      {8, 16, 257, 257, false, "whole_f16_272", 128, 512, 4, 2},
      {64, 16, 257, 257, false, "whole_f16_272", 132, 512, 4, 2},
      {64, 16, 258, 257, false, "whole_f16_272", 132, 512, 4, 2},
      {64, 16, 197, 197, false, "whole_f16_208", 132, 512, 4, 2},
      {1, 16, 257, 257, true, "whole_f16_272", 80, 128, 1, 2},
      // Keys that attention_whole does not hold, and many heads of few.
      {64, 12, 130, 130, false, "f16_64_hopper", 2, 160, 0, 0},
      {64, 12, 50, 50, false, "f16_64_hopper", 1, 128, 0, 0},
      {64, 12, 273, 273, false, "f16_64_hopper", 3, 192, 0, 0}};
  for (const Row &row : kRows) {
    const auto heads = [&](int64_t rows) {
      return "f16[" + std::to_string(row.batch) + "," + std::to_string(row.heads) + "," +
             std::to_string(rows) + ",64]@cuda";
    };
    const std::string result = "f16[" + std::to_string(row.batch) + "," +
                               std::to_string(row.queries) + "," + std::to_string(row.heads * 64) +
                               "]@cuda";
    auto plan = lowerForHopper(
        "%q: " + heads(row.queries) + ", %k: " + heads(row.keys) + ", %v: " + heads(row.keys),
        std::string("%0 = cgc.attention(%q, %k, %v) {is_causal=") +
            (row.causal ? "true" : "false") + ", scale=0.125} : " + result + "\noutput %0");
    ASSERT_TRUE(plan) << plan.status().message();
    const auto &launch =
        std::get<KernelLaunch>(plan->plan.entries[0].buckets[0].records.front().op);
    SCOPED_TRACE(std::to_string(row.batch) + " times " + std::to_string(row.queries) + " and " +
                 std::to_string(row.keys));
    EXPECT_EQ(launch.kernel, "attention_" + row.kernel);
    EXPECT_EQ(launch.grid[0], row.blocks);
    EXPECT_EQ(launch.block[0], row.threads);
    const Bucket &bucket = plan->plan.entries[0].buckets[0];
    for (uint32_t i = 0; i < 3; ++i)
      EXPECT_EQ(bucket.tensors[static_cast<uint32_t>(launch.reads[i])].slot,
                (Slot{BufferKind::Input, i, 0}));
    EXPECT_EQ(launch.ints.size() > 4 && launch.ints[4] == 1, row.causal);
    if (row.tiles > 0) {
      EXPECT_EQ(launch.ints[5], row.tiles);
      EXPECT_EQ(launch.ints[6], row.stages);
      EXPECT_EQ(launch.sharedBytes, (WholeShape{row.tiles, row.threads / 128, row.stages})
                                        .sharedBytes(row.queries, row.keys));
    }
  }
}

TEST(Lower, AttentionOfMoreThanAGridHoldsStaysWithLibTorch) {
  for (const auto &[batch, heads] : {std::pair<int64_t, int64_t>{65536, 1}, {1, 65536}})
    for (const int64_t rows : {3, 70}) {
      const std::string sizes = std::to_string(rows) + ",64]@cuda",
                        tensor = "f16[" + std::to_string(batch) + "," + std::to_string(heads) +
                                 "," + sizes,
                        result = "f16[" + std::to_string(batch) + "," + std::to_string(rows) + "," +
                                 std::to_string(heads * 64) + "]@cuda";
      auto plan = lowerForHopper("%q: " + tensor,
                                 "%0 = cgc.attention(%q, %q, %q) {scale=0.125} : " + result +
                                     "\noutput %0");
      ASSERT_TRUE(plan) << plan.status().message();
      EXPECT_EQ(recordNames(plan->plan.entries[0].buckets[0])[0],
                "aten::scaled_dot_product_attention");
    }
}

/// attention_whole takes no mask, and code of its own has sm_90a only.
TEST(Lower, AttentionWithAMaskOrBeforeHopperIsInChunks) {
  const std::string heads = "f16[1,12,77,64]@cuda",
                    graph = "graph @g(%q: " + heads + ", %k: " + heads + ", %v: " + heads +
                            ", %m: f16[77,77]@cuda) {\n%0 = cgc.attention(%q, %k, %v",
                    end = ") {scale=0.125} : f16[1,77,768]@cuda\noutput %0\n}";
  const std::tuple<std::string, Arch, std::string> kRows[] = {
      {", %m", Arch::Sm90a, "attention_f16_64_hopper"},
      {", %m", Arch::Sm80, "attention_f16_64"},
      {"", Arch::Sm80, "attention_f16_64"}};
  for (const auto &[mask, arch, kernel] : kRows) {
    auto plan = lowerAll(*parse(graph + mask + end), {DeviceKind::Cuda, arch});
    ASSERT_TRUE(plan) << plan.status().message();
    const auto &launch =
        std::get<KernelLaunch>(plan->plan.entries[0].buckets[0].records.front().op);
    EXPECT_EQ(launch.kernel, kernel);
    EXPECT_EQ(launch.reads[3] != kNoTensor, !mask.empty());
  }
}

/// The first layer of a tower reads the moments that the kernel in front of it writes.
TEST(Lower, LayerNormAndEmbeddingWriteMomentsForNormLinear) {
  const std::pair<std::string, std::string> kFirst[] = {
      {"kernel layer_norm_", "%0 = aten.layer_norm(%x, %g) {normalized_shape=[128]} : T[2,5,128]"},
      {"kernel layer_norm_by_f32_",
       "%9, %0 = cgc.add_layer_norm(%x, none, %f) : T[2,5,128]@cuda, T[2,5,128]"},
      {"kernel embedding_", "%0 = aten.embedding(%t, %i) : T[2,5,128]"},
      {"kernel embedding_", "%0 = cgc.embedding(%i, %t, %p) : T[2,5,128]"}};
  for (const std::string dtype : {"f16", "bf16"})
    for (const auto &[kernel, first] : kFirst) {
      const auto typed = [&](std::string text) {
        for (size_t at = 0; (at = text.find("T[", at)) != std::string::npos;)
          text.replace(at, 1, dtype);
        return text;
      };
      auto plan = lowerForHopper(
          typed("%x: T[2,5,128]@cuda, %g: T[128]@cuda, %f: f32[128]@cuda, %i: i64[2,5]@cuda, "
                "%t: T[9,128]@cuda, %p: T[5,128]@cuda, %w: T[24,128]@cuda, %s: f32[24]@cuda"),
          typed(first + R"(@cuda
    %1 = cgc.norm_linear(%0, %w, none, %s) {eps=0.001, activation="none"} : T[2,5,24]@cuda
    %2 = cgc.norm_linear(%0, %w, none, %s) {eps=0.002, activation="none"} : T[2,5,24]@cuda
    output %0, %1, %2)"));
      ASSERT_TRUE(plan) << plan.status().message();
      const Bucket &bucket = plan->plan.entries[0].buckets[0];
      ASSERT_THAT(recordNames(bucket),
                  ElementsAre(kernel + dtype, testing::StartsWith("kernel product_norm_" + dtype),
                              testing::StartsWith("kernel product_norm_" + dtype)));
      const auto launch = [&](size_t i) { return std::get<KernelLaunch>(bucket.records[i].op); };
      ASSERT_EQ(launch(0).writes.size(), 2u);
      ASSERT_NE(launch(0).writes[1], kNoTensor);
      EXPECT_EQ(launch(1).reads[5], launch(0).writes[1]);
      EXPECT_EQ(launch(2).reads[5], launch(0).writes[1]);
      const TensorRef &moments = bucket.tensors[static_cast<uint32_t>(launch(0).writes[1])];
      EXPECT_EQ(moments.dtype, DType::F32);
      EXPECT_THAT(moments.sizes, ElementsAre(10, 2, 2));
    }
}

TEST(Lower, NormLinearOfOtherRowsThanAKernelHasMomentsOfHasALayerNorm) {
  const std::string constants = "%w: f16[24,64]@cuda, %v: f16[24,1088]@cuda, %u: f16[24,96]@cuda, "
                                "%s: f32[24]@cuda, %i: i64[2,5]@cuda, ";
  const std::string ofW = "cgc.norm_linear(%y, %w, none, %s) {eps=0.001, activation=\"none\"} : ";
  const std::string ofV = "cgc.norm_linear(%y, %v, none, %s) {eps=0.001, activation=\"none\"} : ";
  const std::string ofU = "cgc.norm_linear(%y, %u, none, %s) {eps=0.001, activation=\"none\"} : ";
  const std::pair<std::string, std::string> kGraphs[] = {
      // More columns than registers keep; no whole groups.
      {"%x: f16[5,1088]@cuda",
       "%y = aten.layer_norm(%x) {normalized_shape=[1088]} : f16[5,1088]@cuda\n%r = " + ofV +
           "f16[5,24]@cuda"},
      {"%x: f16[5,96]@cuda",
       "%y = aten.layer_norm(%x) {normalized_shape=[96]} : f16[5,96]@cuda\n%r = " + ofU +
           "f16[5,24]@cuda"},
      {"%x: f16[9,96]@cuda",
       "%y = aten.embedding(%x, %i) : f16[2,5,96]@cuda\n%r = " + ofU + "f16[2,5,24]@cuda"},
      // Normalised over two dimensions, of which the reader has one.
      {"%x: f16[5,2,64]@cuda",
       "%y = aten.layer_norm(%x) {normalized_shape=[2, 64]} : f16[5,2,64]@cuda\n%r = " + ofW +
           "f16[5,2,24]@cuda"},
      // Of other rows; of some of them.
      {"%x: f16[5,128]@cuda",
       "%n = aten.layer_norm(%x) {normalized_shape=[128]} : f16[5,128]@cuda\n"
       "%y = aten.view(%n) {size=[10, 64]} : f16[10,64]@cuda\n%r = " +
           ofW + "f16[10,24]@cuda"},
      {"%x: f16[2,5,64]@cuda",
       "%n = aten.layer_norm(%x) {normalized_shape=[64]} : f16[2,5,64]@cuda\n"
       "%y = aten.select(%n) {dim=0, index=0} : f16[5,64]@cuda\n%r = " +
           ofW + "f16[5,24]@cuda"},
      {"%x: f16[9,64]@cuda",
       "%n = aten.embedding(%x, %i) : f16[2,5,64]@cuda\n"
       "%y = aten.slice(%n) {dim=1, start=1, end=5} : f16[2,4,64][320,64,1]@cuda\n%r = " +
           ofW + "f16[2,4,24]@cuda"},
      // Between vectors.
      {"%x: f16[321]@cuda",
       "%n = aten.slice(%x) {dim=0, start=1, end=321} : f16[320]@cuda\n"
       "%m = aten.view(%n) {size=[5, 64]} : f16[5,64]@cuda\n"
       "%y = aten.layer_norm(%m) {normalized_shape=[64]} : f16[5,64]@cuda\n%r = " +
           ofW + "f16[5,24]@cuda"},
      // For so many rows products by themselves are faster.
      {"%x: f16[1537,64]@cuda",
       "%y = aten.layer_norm(%x) {normalized_shape=[64]} : f16[1537,64]@cuda\n%r = " + ofW +
           "f16[1537,24]@cuda"}};
  for (const auto &[input, lines] : kGraphs) {
    auto plan = lowerForHopper(constants + input, lines + "\noutput %r");
    ASSERT_TRUE(plan) << plan.status().message();
    const Bucket &bucket = plan->plan.entries[0].buckets[0];
    EXPECT_THAT(recordNames(bucket), testing::Not(testing::Contains(HasSubstr("product_norm"))))
        << lines;
    EXPECT_THAT(recordNames(bucket), testing::Contains("kernel layer_norm_f16")) << lines;
    EXPECT_EQ(std::get<KernelLaunch>(bucket.records[0].op).writes[1], kNoTensor) << lines;
  }
}

TEST(Lower, NormLinearOfWhatNoProductWroteHasALayerNorm) {
  const auto module = parse(R"(graph @g(%x: f16[4,64]@cuda, %w: f16[24,64]@cuda,
                                        %s: f32[24]@cuda) {
    %0 = aten.relu(%x) : f16[4,64]@cuda
    %1 = cgc.norm_linear(%0, %w, none, %s) {eps=0.001, activation="none"} : f16[4,24]@cuda
    output %1
  })");
  auto plan = lowerAll(*module, {DeviceKind::Cuda, Arch::Sm90a});
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_THAT(recordNames(plan->plan.entries[0].buckets[0]),
              ElementsAre("kernel elementwise_f16", "kernel layer_norm_f16",
                          testing::StartsWith("kernel product_f16_")));
}

TEST(Lower, LinearIsALibraryCallOnCudaWhereItsRowsAreDense) {
  auto module = parse(R"(graph @g(%x: f16[2,3,8]@cuda, %w: f16[5,8]@cuda, %b: f16[20]@cuda) {
    %0 = aten.slice(%b) {dim=0, start=8, end=13} : f16[5]@cuda
    %1 = aten.linear(%x, %w, %0) : f16[2,3,5]@cuda
    %2 = aten.slice(%b) {dim=0, start=3, end=8} : f16[5]@cuda
    %3 = aten.linear(%x, %w, %2) : f16[2,3,5]@cuda
    %4 = aten.slice(%x) {dim=2, start=2, end=5} : f16[2,3,3][24,8,1]@cuda
    %5 = aten.slice(%w) {dim=1, start=0, end=3} : f16[5,3][8,1]@cuda
    %6 = aten.linear(%4, %5) : f16[2,3,5]@cuda
    %7 = aten.transpose(%x) {dim0=0, dim1=1} : f16[3,2,8][8,24,1]@cuda
    %8 = aten.linear(%7, %w) : f16[3,2,5]@cuda
    %9 = aten.select(%x) {dim=0, index=0} : f16[3,8]@cuda
    %10 = aten.select(%9) {dim=0, index=2} : f16[8]@cuda
    %11 = aten.linear(%10, %w) : f16[5]@cuda
    output %1, %3, %6, %8, %11
  })");
  auto cuda = lowerAll(*module, DeviceKind::Cuda);
  ASSERT_TRUE(cuda) << cuda.status().message();
  const Bucket &bucket = cuda->plan.entries[0].buckets[0];
  // The second one's bias lies at 6 bytes; the fourth one's input has no rows at one distance.
  ASSERT_THAT(recordNames(bucket),
              ElementsAre("cublaslt.matmul", "aten::addmm.out", "cublaslt.matmul", "aten::linear",
                          "cublaslt.matmul"));
  auto product = [&](size_t record) {
    return *productCall(std::get<LibraryCall>(bucket.records[record].op), bucket.tensors);
  };
  auto tensor = [&](TensorId id) { return bucket.tensors[static_cast<uint32_t>(id)]; };
  EXPECT_THAT(tensor(product(0).x).sizes, ElementsAre(6, 8));
  EXPECT_EQ(tensor(product(0).bias).slot.offset, 16u);
  EXPECT_EQ(product(0).residual, kNoTensor);
  EXPECT_EQ(tensor(product(0).workspace).sizes[0], 32 << 20);
  EXPECT_FALSE(product(0).relu || product(0).tf32);
  EXPECT_THAT(tensor(product(2).x).strides, ElementsAre(8, 1));
  EXPECT_THAT(tensor(product(2).weight).strides, ElementsAre(8, 1));
  EXPECT_EQ(product(2).bias, kNoTensor);
  EXPECT_THAT(tensor(product(4).x).sizes, ElementsAre(1, 8));
  EXPECT_THAT(tensor(product(4).d).sizes, ElementsAre(1, 5));
  // All calls share one workspace.
  EXPECT_LT(bucket.arenaBytes, (32 << 20) + 4096u);
  EXPECT_TRUE(validate(cuda->plan).isOk()) << validate(cuda->plan).message();

  auto portable = lowerAll(*module, {DeviceKind::Cuda, Arch::Sm80});
  ASSERT_TRUE(portable);
  EXPECT_LT(portable->plan.entries[0].buckets[0].arenaBytes, (4 << 20) + 4096u);
}

TEST(Lower, ProductsOfOtherTypesOrWithoutElementsStayWithLibTorch) {
  for (std::string types :
       {"f64[2,8] f64[5,8] f64[2,5]", "f32[0,8] f32[5,8] f32[0,5]", "f32[2,0] f32[5,0] f32[2,5]"}) {
    auto [x, rest] = llvm::StringRef(types).split(' ');
    auto [w, y] = rest.split(' ');
    auto module =
        parse("graph @g(%x: " + x.str() + "@cuda, %w: " + w.str() +
              "@cuda) {\n  %0 = aten.linear(%x, %w) : " + y.str() + "@cuda\n  output %0\n}");
    auto plan = lowerAll(*module, DeviceKind::Cuda);
    ASSERT_TRUE(plan) << plan.status().message();
    EXPECT_THAT(recordNames(plan->plan.entries[0].buckets[0]), ElementsAre("aten::mm.out"))
        << types;
  }
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

TEST(Lower, NamesEveryOffender) {
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
  EXPECT_EQ(plan.status().code(), Code::Unsupported);
  EXPECT_THAT(plan.status().message(), AllOf(HasSubstr("host op"), HasSubstr("model.py"),
                                             HasSubstr("type of %1"), HasSubstr("in-place")));
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

// Tests of lower(): optimizers, which kernels they become and which states they write in place.
#include "backend/kernels.h"
#include "runtime/kernels/optimizer/tensor_groups.h"
#include "tests/unit/backend/lowered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::backend {
namespace {

using testing::ElementsAre;

/// The first bucket of a text for cuda.
Bucket cudaBucket(const std::string &text) {
  auto plan = lowerAll(*parse(text), DeviceKind::Cuda);
  EXPECT_TRUE(plan) << plan.status().message();
  return plan ? plan->plan.entries[0].buckets[0] : Bucket();
}

/// A module with two parameters and their moments, whose graph makes a step of Adam. The gradients
/// are `gradients`.
std::string adamModule(const std::string &gradients, const std::string &more = "") {
  return R"(module @Model {
  state @w : f32[3,5]
  state @b : f32[3,5]
  state @m role="optimizer" : f32[3,5]
  state @l role="optimizer" : f32[3,5]
  state @q role="optimizer" : f32[3,5]
  state @r role="optimizer" : f32[3,5]
  graph @step(%g: f32[3,5]@cuda, %h: f32[3,5]@cuda, %lr: f32[]@cuda, %n: i64[]@cuda) {
    %0 = get_attr @w : f32[3,5]@cuda
    %1 = get_attr @b : f32[3,5]@cuda
    %2 = get_attr @m : f32[3,5]@cuda
    %3 = get_attr @l : f32[3,5]@cuda
    %4 = get_attr @q : f32[3,5]@cuda
    %5 = get_attr @r : f32[3,5]@cuda
    %6, %7, %8, %9, %10, %11 = cgc.adam([%0, %1], [)" +
         gradients +
         R"(], [%2, %3], [%4, %5], %lr, %n) : f32[3,5]@cuda, f32[3,5]@cuda, f32[3,5]@cuda, f32[3,5]@cuda, f32[3,5]@cuda, f32[3,5]@cuda
    )" + more +
         R"(
    %12 = aten.sum(%h) : f32[]@cuda
    output %12, state @w = %6, state @b = %7, state @m = %8, state @l = %9, state @q = %10, state @r = %11
  }
})";
}

const KernelLaunch *launchOf(const Bucket &bucket, std::string_view kernel) {
  for (const LaunchRecord &record : bucket.records)
    if (const auto *launch = std::get_if<KernelLaunch>(&record.op);
        launch && launch->kernel == kernel)
      return launch;
  return nullptr;
}

TEST(LowerOptimizer, OneLaunchWritesAllStatesInPlace) {
  const Bucket bucket = cudaBucket(adamModule("%g, %h"));
  EXPECT_THAT(recordNames(bucket), ElementsAre("kernel adam_f32", "kernel row_sums_f32"));
  const KernelLaunch *adam = launchOf(bucket, "adam_f32");
  ASSERT_TRUE(adam);
  ASSERT_EQ(adam->reads.size(), 4u + 2 * 4);
  ASSERT_EQ(adam->writes.size(), 2u * 4);
  EXPECT_EQ(adam->reads[2], kNoTensor); // No scale.
  EXPECT_EQ(adam->reads[3], kNoTensor); // No skip.
  const auto slot = [&](TensorId id) { return bucket.tensors[uint32_t(id)].slot; };
  for (size_t group = 0; group < 2; ++group)
    for (size_t write = 0; write < 3; ++write) {
      const Slot written = slot(adam->writes[group * 4 + write]);
      EXPECT_EQ(written.buffer, BufferKind::State);
      EXPECT_EQ(written, slot(adam->reads[4 + group * 4 + (write == 0 ? 0 : write + 1)]));
    }
  EXPECT_EQ(adam->writes[3], kNoTensor); // No copy.
}

/// The copy is a state that the update does not read; a GEMM before it does.
TEST(LowerOptimizer, CopiesAreWrittenInPlaceByTheSameLaunch) {
  const Bucket bucket = cudaBucket(R"(module @Model {
  state @w : f32[8,8]
  state @"w:bf16" role="copy" : bf16[8,8]
  graph @step(%x: bf16[8,8]@cuda, %g: f32[8,8]@cuda, %lr: f32[]@cuda, %n: i64[]@cuda) {
    %0 = get_attr @w : f32[8,8]@cuda
    %1 = get_attr @"w:bf16" : bf16[8,8]@cuda
    %2 = aten.matmul(%x, %1) : bf16[8,8]@cuda
    %3, %4 = cgc.sgd([%0], [%g], [], %lr, %n) {copy=bf16} : f32[8,8]@cuda, bf16[8,8]@cuda
    output %2, state @w = %3, state @"w:bf16" = %4
  }
})");
  EXPECT_EQ(recordNames(bucket).size(), 2u);
  EXPECT_EQ(recordNames(bucket).back(), "kernel sgd_f32");
  const KernelLaunch *sgd = launchOf(bucket, "sgd_f32");
  ASSERT_TRUE(sgd);
  ASSERT_EQ(sgd->writes.size(), 3u);
  const TensorRef &copy = bucket.tensors[uint32_t(sgd->writes[2])];
  EXPECT_EQ(copy.dtype, DType::BF16);
  EXPECT_EQ(copy.slot.buffer, BufferKind::State);
  EXPECT_EQ(copy.slot.index, 1u);
}

TEST(LowerOptimizer, AveragesFollowTheNewParametersInPlace) {
  const Bucket bucket = cudaBucket(R"(module @Model {
  state @w : f32[3]
  state @"w:ema" role="average" : f32[3]
  graph @step(%g: f32[3]@cuda, %lr: f32[]@cuda, %n: i64[]@cuda) {
    %0 = get_attr @w : f32[3]@cuda
    %1 = get_attr @"w:ema" : f32[3]@cuda
    %2 = cgc.sgd([%0], [%g], [], %lr, %n) : f32[3]@cuda
    %3 = cgc.ema([%1], [%2]) {decay=0.5} : f32[3]@cuda
    output %lr, state @w = %2, state @"w:ema" = %3
  }
})");
  EXPECT_THAT(recordNames(bucket), ElementsAre("kernel sgd_f32", "kernel ema_f32", "memcpy"));
  const KernelLaunch *ema = launchOf(bucket, "ema_f32"), *sgd = launchOf(bucket, "sgd_f32");
  ASSERT_TRUE(ema && sgd);
  const auto slot = [&](TensorId id) { return bucket.tensors[uint32_t(id)].slot; };
  EXPECT_EQ(slot(ema->writes[0]), slot(ema->reads[1]));
  EXPECT_EQ(slot(ema->writes[0]).buffer, BufferKind::State);
  EXPECT_EQ(slot(ema->reads[2]), slot(sgd->writes[0]));
}

/// Beside the reductions of gradients, updates have a detached branch; alone they are in order.
TEST(LowerOptimizer, UpdatesAreDetachedBesideCollectives) {
  const auto branches = [](const std::string &gradients) {
    const Bucket bucket = cudaBucket(R"(module @Model {
  state @w : f32[3]
  state @v : f32[3]
  state @m role="optimizer" : f32[3]
  state @q role="optimizer" : f32[3]
  state @"w:ema" role="average" : f32[3]
  graph @step(%g: f32[3]@cuda, %lr: f32[]@cuda, %n: i64[]@cuda) {
    %w = get_attr @w : f32[3]@cuda
    %v = get_attr @v : f32[3]@cuda
    %m = get_attr @m : f32[3]@cuda
    %q = get_attr @q : f32[3]@cuda
    %a = get_attr @"w:ema" : f32[3]@cuda
    %x = aten.neg(%g) : f32[3]@cuda
    %y = aten.exp(%g) : f32[3]@cuda
    )" + gradients + R"(
    %0, %1, %2 = cgc.adam([%w], [%gx], [%m], [%q], %lr, %n) : f32[3]@cuda, f32[3]@cuda, f32[3]@cuda
    %3 = cgc.sgd([%v], [%gy], [], %lr, %n) : f32[3]@cuda
    %4 = cgc.ema([%a], [%0]) {decay=0.5} : f32[3]@cuda
    output %lr, state @w = %0, state @m = %1, state @q = %2, state @v = %3, state @"w:ema" = %4
  }
})");
    std::map<std::string, uint32_t> byName;
    for (const LaunchRecord &record : bucket.records)
      byName[recordName(record)] = record.branch;
    return byName;
  };
  auto several = branches("%gx, %gy = cgc.all_reduce([%x, %y]) {reduction=\"mean\"} : "
                          "f32[3]@cuda, f32[3]@cuda");
  EXPECT_EQ(several["nccl.all_reduce"], kCollectiveBranch);
  for (const char *kernel : {"kernel adam_f32", "kernel sgd_f32", "kernel ema_f32"})
    EXPECT_EQ(several[kernel], kUpdateBranch) << kernel;
  auto alone = branches("%gx = aten.neg(%x) : f32[3]@cuda\n%gy = aten.neg(%y) : f32[3]@cuda");
  for (const char *kernel : {"kernel adam_f32", "kernel sgd_f32", "kernel ema_f32"})
    EXPECT_EQ(alone[kernel], 0u) << kernel;
}

/// A parameter may be a gradient itself, as in the sum of its squares.
TEST(LowerOptimizer, AParameterMayBeItsOwnGradient) {
  EXPECT_THAT(recordNames(cudaBucket(adamModule("%0, %1"))),
              ElementsAre("kernel adam_f32", "kernel row_sums_f32"));
}

/// Groups have no order: one may not overwrite what another one reads.
TEST(LowerOptimizer, AParameterThatIsTheGradientOfAnotherIsNotOverwritten) {
  EXPECT_THAT(recordNames(cudaBucket(adamModule("%1, %h"))),
              ElementsAre("kernel adam_f32", "kernel row_sums_f32", "memcpy"));
  EXPECT_THAT(recordNames(cudaBucket(adamModule("%1, %0"))),
              ElementsAre("kernel adam_f32", "kernel row_sums_f32", "memcpy", "memcpy"));
}

/// Lists of `count` names "%<prefix>0, %<prefix>1, ...", for types `type`.
struct Names {
  Names(const std::string &prefix, int count, const std::string &type) {
    for (int i = 0; i < count; ++i) {
      const std::string comma = i == 0 ? "" : ", ", name = "%" + prefix + std::to_string(i);
      list += comma + name;
      typed += comma + name + ": " + type;
      types += comma + type;
    }
  }
  std::string list, typed, types;
};

TEST(LowerOptimizer, ALaunchTakes256Parameters) {
  const Names w("w", 300, "f32[2]@cuda"), g("g", 300, "f32[2]@cuda"), r("r", 300, "f32[2]@cuda");
  const Bucket bucket =
      cudaBucket("graph @g(" + w.typed + ", " + g.typed + ", %lr: f32[]@cuda, %n: i64[]@cuda) {\n" +
                 r.list + " = cgc.sgd([" + w.list + "], [" + g.list +
                 "], [], %lr, %n) : " + r.types + "\n%norm = cgc.gradient_norm([" + g.list +
                 "]) : f32[]@cuda\noutput " + r.list + ", %norm\n}");
  EXPECT_THAT(recordNames(bucket),
              ElementsAre("kernel sgd_f32", "kernel sgd_f32", "kernel square_sums_f32",
                          "kernel square_sums_f32", "kernel gradient_norm_f32"));
  const auto launch = [&](size_t i) { return std::get<KernelLaunch>(bucket.records[i].op); };
  EXPECT_EQ(launch(0).reads.size(), 4u + 256 * 3);
  EXPECT_EQ(launch(0).writes.size(), 256u * 3);
  EXPECT_EQ(launch(1).reads.size(), 4u + 44 * 3);
  EXPECT_EQ(launch(0).reads[6], kNoTensor); // No momentum.
  EXPECT_EQ(launch(0).writes[1], kNoTensor);
  EXPECT_EQ(launch(0).grid[0], 256u);
  EXPECT_EQ(launch(3).reads.size(), 44u);
  // The launches share one tensor of sums.
  const TensorRef &sums = bucket.tensors[uint32_t(launch(4).reads[0])],
                  &last = bucket.tensors[uint32_t(launch(3).writes[0])];
  EXPECT_THAT(sums.sizes, ElementsAre(300));
  EXPECT_EQ(last.slot.offset, sums.slot.offset + 256 * sizeof(float));
}

TEST(LowerOptimizer, AGridHasAtMostTheCtasThatRunAtATime) {
  const Bucket bucket = cudaBucket(
      "graph @g(%w: f32[100000000]@cuda, %g: f32[100000000]@cuda, %lr: f32[]@cuda, %n: "
      "i64[]@cuda) {\n%0 = cgc.sgd([%w], [%g], [], %lr, %n) : f32[100000000]@cuda\noutput %0\n}");
  EXPECT_EQ(launchOf(bucket, "sgd_f32")->grid[0],
            kGroupBlocksPerMultiprocessor * LowerOptions(DeviceKind::Cuda).gpu().multiprocessors);
}

/// The kernel gets gradients of other dtypes and layouts as copies; f64 is LibTorch's.
TEST(LowerOptimizer, ConvertsGradientsAndLeavesOtherParametersToLibTorch) {
  const Bucket converted = cudaBucket(
      R"(graph @g(%w: f32[2,3]@cuda, %v: f32[2,3]@cuda, %g: bf16[2,3]@cuda, %h: f32[3,2]@cuda, %lr: f32[]@cuda, %n: i64[]@cuda) {
    %0 = aten.transpose(%h) {dim0=0, dim1=1} : f32[2,3][1,2]@cuda
    %1, %2 = cgc.sgd([%w, %v], [%g, %0], [], %lr, %n) : f32[2,3]@cuda, f32[2,3]@cuda
    %3 = cgc.gradient_norm([%g, %0]) : f32[]@cuda
    output %1, %2, %3
  })");
  EXPECT_THAT(recordNames(converted),
              ElementsAre("kernel copy", "kernel copy", "kernel sgd_f32", "kernel copy",
                          "kernel copy", "kernel square_sums_f32", "kernel gradient_norm_f32"));
  const Bucket mixed = cudaBucket(
      R"(graph @g(%w: f32[2]@cuda, %v: f64[2]@cuda, %g: f32[2]@cuda, %h: f64[2]@cuda, %lr: f32[]@cuda, %n: i64[]@cuda) {
    %0, %1 = cgc.sgd([%w, %v], [%g, %h], [], %lr, %n) : f32[2]@cuda, f64[2]@cuda
    %2 = cgc.gradient_norm([%g, %h]) : f32[]@cuda
    output %0, %1, %2
  })");
  EXPECT_THAT(recordNames(mixed),
              ElementsAre("kernel sgd_f32", "aten::mul.out", "aten::sub.out",
                          "aten::linalg_vector_norm.out", "aten::linalg_vector_norm.out", "memcpy",
                          "memcpy", "aten::linalg_vector_norm.out", "aten::copy_"));
}

TEST(LowerOptimizer, ParametersWithoutElementsNeedNoLaunch) {
  EXPECT_THAT(recordNames(cudaBucket(
                  R"(graph @g(%w: f32[0]@cuda, %g: f32[0]@cuda, %lr: f32[]@cuda, %n: i64[]@cuda) {
    %0 = cgc.sgd([%w], [%g], [], %lr, %n) : f32[0]@cuda
    output %0
  })")),
              testing::IsEmpty());
}

TEST(LowerOptimizer, UniformIsOneKernel) {
  const Bucket bucket = cudaBucket(R"(graph @g(%s: i64[]@cuda, %o: i64[]@cuda) {
    %0 = cgc.uniform(%s, %o) {size=[3, 700], stream=9} : f32[3,700]@cuda
    output %0
  })");
  EXPECT_THAT(recordNames(bucket), ElementsAre("kernel uniform_f32"));
  EXPECT_EQ(launchOf(bucket, "uniform_f32")->grid[0], 3u);
  EXPECT_THAT(launchOf(bucket, "uniform_f32")->ints, ElementsAre(9));
}

} // namespace
} // namespace cgc::backend

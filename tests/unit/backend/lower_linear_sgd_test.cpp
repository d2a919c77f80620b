// Tests of lower(): cgc.linear_sgd, which is one kernel in place for small layers, and gradients
// with a step of SGD for others.
#include "runtime/kernels/gemm/gemm_f32.h"
#include "tests/unit/backend/lowered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cgc::backend {
namespace {

using testing::ElementsAre;

/// The first bucket of a step for a layer [n, k] of 64 samples.
Bucket stepOf(int64_t n, int64_t k, const std::string &dtype, const LowerOptions &options) {
  const std::string at = options.target == DeviceKind::Cuda ? "@cuda" : "",
                    bias = dtype + "[" + std::to_string(n) + "]",
                    weight = dtype + "[" + std::to_string(n) + "," + std::to_string(k) + "]",
                    grad = dtype + "[64," + std::to_string(n) + "]" + at,
                    input = dtype + "[64," + std::to_string(k) + "]" + at;
  auto plan = lowerAll(*parse("module @Model {\n  state @w : " + weight + "\n  state @b : " + bias +
                              "\n  state @n : i64[]\n  graph @step(%g: " + grad + ", %x: " + input +
                              ", %lr: " + dtype + "[]" + at + R"() {
    %0 = get_attr @w : )" + weight +
                              at + R"(
    %1 = get_attr @b : )" + bias +
                              at + R"(
    %2 = get_attr @n : i64[])" +
                              at + R"(
    %3, %4, %5 = cgc.linear_sgd(%0, %1, %g, %x, %lr, %2) {weight_decay=0.25} : )" +
                              weight + at + ", " + bias + at + ", i64[]" + at + R"(
    output %lr, state @w = %3, state @b = %4, state @n = %5
  }
})"),
                       options);
  EXPECT_TRUE(plan) << plan.status().message();
  return plan ? plan->plan.entries[0].buckets[0] : Bucket();
}

TEST(LowerLinearSgd, OneKernelWritesASmallLayerInPlace) {
  const Bucket bucket = stepOf(128, 256, "f32", DeviceKind::Cuda);
  EXPECT_THAT(recordNames(bucket), ElementsAre("kernel gemm_sgd_f32_2", "memcpy"));
  const auto *update = std::get_if<KernelLaunch>(&bucket.records.at(0).op);
  ASSERT_TRUE(update);
  ASSERT_EQ(update->writes.size(), 3u);
  EXPECT_EQ(update->floats, std::vector<double>{0.25});
  const auto slot = [&](TensorId id) { return bucket.tensors[uint32_t(id)].slot; };
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(slot(update->writes[i]).buffer, BufferKind::State);
    EXPECT_EQ(slot(update->writes[i]), slot(update->reads[kGemmSgdWeight + i]));
  }
}

TEST(LowerLinearSgd, OtherLayersHaveGradients) {
  EXPECT_THAT(recordNames(stepOf(2048, 2048, "f32", DeviceKind::Cuda)),
              ElementsAre("kernel sum_rows_f32", "cublaslt.matmul", "kernel sgd_f32",
                          "kernel elementwise_i64", "memcpy"));
  EXPECT_THAT(recordNames(stepOf(8, 256, "f32", DeviceKind::Cuda)),
              ElementsAre("kernel sum_rows_f32", "cublaslt.matmul", "kernel sgd_f32",
                          "kernel elementwise_i64", "memcpy"));
  EXPECT_THAT(recordNames(stepOf(128, 256, "f32", {DeviceKind::Cuda, Arch::Sm80})),
              ElementsAre("kernel sum_rows_f32", "cublaslt.matmul", "kernel sgd_f32",
                          "kernel elementwise_i64", "memcpy"));
  EXPECT_THAT(recordNames(stepOf(128, 256, "f64", DeviceKind::Cpu)),
              testing::Contains("aten::mm.out"));
}

} // namespace
} // namespace cgc::backend

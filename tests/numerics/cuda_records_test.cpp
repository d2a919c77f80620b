// Training steps for cuda: which of their records LibTorch computes.
#include "driver/compile.h"
#include "frontend/frontend.h"
#include "tests/numerics/optimizer_of.h"
#include "tests/numerics/test_models.h"
#include "tests/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace cgc {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// Compiles a training step for cuda. `options` has the optimizer.
PlanData cudaStep(const std::string &model, const std::vector<driver::InputSpec> &inputs,
                  const std::string &options, std::optional<DType> autocast = {}) {
  auto root =
      frontend::importTorchScript(test::trainingModel(model), frontend::ImportFor::Training);
  EXPECT_TRUE(root.isOk()) << root.status().message();
  driver::CompileOptions compile;
  compile.inputs = inputs;
  compile.target = DeviceKind::Cuda;
  compile.libraryFolder = test::buildDir() / "lib";
  compile.train =
      driver::TrainOptions{.optimizer = test::optimizerOf(options), .autocast = autocast};
  ir::Diagnostics diagnostics;
  auto compiled = driver::compile(**root, compile, diagnostics);
  EXPECT_TRUE(compiled.isOk()) << compiled.status().message();
  return compiled.isOk() ? std::move(compiled->plan) : PlanData();
}

/// The calls of LibTorch in all entries.
std::set<std::string> libTorchCalls(const PlanData &plan) {
  std::set<std::string> calls;
  for (const Entry &entry : plan.entries)
    for (const LaunchRecord &record : entry.buckets.at(0).records)
      if (std::holds_alternative<AtenCall>(record.op))
        calls.insert(recordName(record));
  return calls;
}

const std::vector<driver::InputSpec> kPairs = {{"image", DType::F32, {4, 3, 32, 32}},
                                               {"text", DType::I64, {4, 16}}};
constexpr const char *
    kAdamW = "rule=adamw,lr=0.001",
   *kAll = "rule=sgd,lr=0.1,momentum=0.9,schedule=cosine,warmup=10,steps=100,clip-norm=1.0,ema=0.9,"
           "clamp=clip.logit_scale=0:4.6052";

/// A step of a CLIP model with heads of 64 columns, for which attention has kernels.
TEST(CudaRecords, AStepOfClipUnderAutocastHasNoneOfLibTorch) {
  for (const std::string model : {"train_clip_wide", "train_siglip_wide"})
    for (const DType dtype : {DType::BF16, DType::F16})
      for (const char *options : {kAdamW, kAll}) {
        SCOPED_TRACE(model + " " + options);
        const PlanData plan = cudaStep(model, kPairs, options, dtype);
        ASSERT_FALSE(plan.entries.empty());
        EXPECT_THAT(libTorchCalls(plan), IsEmpty());
      }
}

/// Without autocast, the products of attention are LibTorch's.
TEST(CudaRecords, AStepOfClipInF32HasOnlyProductsOfAttention) {
  const PlanData plan = cudaStep("train_clip_wide", kPairs, kAdamW);
  EXPECT_THAT(libTorchCalls(plan), UnorderedElementsAre("aten::matmul"));
}

/// The weight of the first convolution has three channels. Batch norms are LibTorch's in evaluation
/// alone.
TEST(CudaRecords, AStepOfAResNetUnderAutocastHasOneOfLibTorch) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    const PlanData plan =
        cudaStep("train_resnet18", {{"x", DType::F32, {8, 3, 64, 64}}, {"label", DType::I64, {8}}},
                 "rule=sgd,lr=0.1,momentum=0.9", dtype);
    int64_t calls = 0;
    for (const LaunchRecord &record : plan.findEntry("step")->buckets.at(0).records)
      if (std::holds_alternative<AtenCall>(record.op)) {
        EXPECT_EQ(recordName(record), "aten::convolution_backward");
        ++calls;
      }
    EXPECT_EQ(calls, 1);
    EXPECT_THAT(libTorchCalls(plan),
                UnorderedElementsAre("aten::convolution_backward", "aten::batch_norm"));
  }
}

/// The forward pass, the loss, the gradients and the update. The step is counted in place.
TEST(CudaRecords, AStepOfALinearCopiesNothing) {
  const PlanData plan = cudaStep(
      "train_linear", {{"x", DType::F32, {4, 32}}, {"label", DType::I64, {4}}}, "rule=sgd,lr=0.1");
  EXPECT_THAT(libTorchCalls(plan), IsEmpty());
  for (const LaunchRecord &record : plan.findEntry("step")->buckets.at(0).records)
    EXPECT_FALSE(std::holds_alternative<Memcpy>(record.op));
}

} // namespace
} // namespace cgc

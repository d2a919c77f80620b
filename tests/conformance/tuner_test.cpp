// The tuner on a GPU: it replaces slow choices, keeps the results, and records the GPU. No times
// are asserted, except that the worst of several tiles is replaced.
#include "tests/conformance/cuda_fixture.h"
#include "tests/conformance/element_bytes.h"
#include "tests/unit/tuner/gemm_chain.h"

#include "runtime/exec/gpu.h"
#include "tuner/tuner.h"

#include <cmath>

namespace cgc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Tune : public CudaTest {
protected:
  void load(const SamplePlan &sample) {
    CudaTest::load(sample);
    weights_ = sample.weights;
  }

  void loadChain(DType dtype, MadeOf made) {
    load(gemmChain(dtype, made, [&](int index, int64_t count) {
      std::vector<double> values;
      for (const float v : randomFloats(size_t(count), unsigned(index)))
        values.push_back((v - 0.5) * 0.02);
      return encode(dtype, values);
    }));
  }

  /// Tunes the loaded plan, loads the tuned one, and returns the report.
  std::vector<tuner::TunedGemm> tune() {
    auto tuned = tuner::tune(*plan_);
    if (!tuned.isOk())
      throw std::runtime_error(tuned.status().message());
    EXPECT_THAT(tuned->notes, IsEmpty());
    load({tuned->plan, weights_});
    return std::move(tuned->gemms);
  }

  std::vector<double> compute(std::vector<std::string> *notes = nullptr) {
    Context context = this->context(ExecutorKind::Graph, /*poison=*/true);
    if (notes)
      *notes = context.notes();
    const IoTensor &io = plan_->data().entries[0].buckets[0].inputs[0];
    std::vector<std::byte> x = encode(io.dtype, randomFloats(kChainM * kChainNarrow, 99)),
                           y(x.size());
    const TensorView in{x.data(), io.dtype, DeviceKind::Cpu, io.sizes, {}},
        out{y.data(), io.dtype, DeviceKind::Cpu, io.sizes, {}};
    const Status status = context.run("main", {&in, 1}, {&out, 1});
    EXPECT_TRUE(status.isOk()) << status.message();
    return decodeAll(io.dtype, y);
  }

  static void expectNear(const std::vector<double> &a, const std::vector<double> &b,
                         double relative) {
    double distance = 0, size = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      distance += (a[i] - b[i]) * (a[i] - b[i]);
      size += b[i] * b[i];
    }
    EXPECT_LT(std::sqrt(distance / size), relative); // False for NaN.
  }

  /// Whether the GPU runs the tiles.
  bool hasHopper() {
    const Result<Gpu> gpu = findGpu(0);
    return gpu.isOk() && checkGpu(*gpu, kHopper).isOk();
  }

  std::vector<std::vector<std::byte>> weights_;
};

TEST_F(Tune, TheWorstTilesAreReplacedAlikeInAllLayers) {
  if (!hasHopper())
    GTEST_SKIP() << "the tiles need an H100 or H200";
  for (const DType dtype : {DType::F16, DType::BF16}) {
    loadChain(dtype, MadeOf::Tiles);
    const std::vector<double> before = compute();
    const Bucket was = plan_->data().entries[0].buckets[0];
    const auto gemms = tune();
    ASSERT_EQ(gemms.size(), 2u);
    for (const tuner::TunedGemm &gemm : gemms) {
      EXPECT_EQ(gemm.sites, 3u) << gemm.description;
      EXPECT_GE(gemm.tried, 10u) << gemm.description;
      EXPECT_NE(gemm.after, gemm.before) << gemm.description;
    }
    const PlanData &plan = plan_->data();
    const Bucket &is = plan.entries[0].buckets[0];
    for (size_t i = 0; i < is.records.size(); ++i) {
      EXPECT_EQ(is.records[i].op.index(), is.records[i % 2].op.index()) << "layers differ";
      EXPECT_NE(is.records[i], was.records[i]);
      if (const auto *launch = std::get_if<KernelLaunch>(&is.records[i].op)) {
        const auto &first = std::get<KernelLaunch>(is.records[i % 2].op);
        EXPECT_EQ(launch->kernel, first.kernel);
        EXPECT_EQ(launch->sharedBytes, first.sharedBytes);
      }
    }
    EXPECT_TRUE(is.isMeasured);
    EXPECT_GT(is.expectedMicros, 0);
    ASSERT_TRUE(plan.gpu);
    EXPECT_TRUE(plan.gpu->tuned);
    EXPECT_EQ(plan.gpu->name, findGpu(0)->name);
    std::vector<std::string> notes;
    expectNear(compute(&notes), before, dtype == DType::F16 ? 1e-3 : 8e-3);
    EXPECT_THAT(notes, IsEmpty());
  }
}

TEST_F(Tune, CallsAreFrozenAndNeedNoOtherGpu) {
  for (const DType dtype : {DType::F32, DType::F16})
    for (const MadeOf made : {MadeOf::Calls, MadeOf::TunedCalls}) {
      loadChain(dtype, made);
      const std::vector<double> before = compute();
      const auto gemms = tune();
      ASSERT_EQ(gemms.size(), 2u);
      for (const LaunchRecord &record : plan_->data().entries[0].buckets[0].records) {
        // No tiles, because the plan had no sm_90a code.
        const auto *call = std::get_if<LibraryCall>(&record.op);
        ASSERT_TRUE(call);
        EXPECT_FALSE(call->algorithm.empty());
      }
      std::vector<std::string> notes;
      expectNear(compute(&notes), before, dtype == DType::F32 ? 1e-5 : 1e-3);
      EXPECT_THAT(notes, IsEmpty()) << "frozen for this machine";
    }
}

TEST_F(Tune, WhatIsTunedCanBeTunedAgain) {
  loadChain(DType::F16, MadeOf::Calls);
  const std::vector<double> before = compute();
  tune();
  tune();
  expectNear(compute(), before, 1e-3);
}

TEST_F(Tune, OnAnotherGpuItIsOneNoteAndTheSameResult) {
  if (!hasHopper())
    GTEST_SKIP() << "the tiles need an H100 or H200";
  loadChain(DType::F16, MadeOf::Tiles);
  const std::vector<double> before = compute();
  PlanData plan = plan_->data();
  plan.gpu = {"NVIDIA Some", 17, true};
  load({plan, weights_});
  std::vector<std::string> notes;
  EXPECT_EQ(compute(&notes), before);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("were tuned on NVIDIA Some (17 SMs)")));
  plan.gpu->tuned = false; // Launch shapes that the model chose need no note.
  load({plan, weights_});
  compute(&notes);
  EXPECT_THAT(notes, IsEmpty());
}

} // namespace
} // namespace cgc::test

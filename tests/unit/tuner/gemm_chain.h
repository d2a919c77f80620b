// A plan for tests of the tuner: three layers of two GEMMs each, with weights of their own.
#pragma once

#include "backend/gemm_tile.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/pointwise/activation.h"
#include "runtime/plan/gemm_call.h"
#include "tests/unit/runtime/sample_plan.h"

namespace cgc::test {

inline constexpr int64_t kM = 77, kNarrow = 256, kWide = 1024;
inline constexpr int kLayers = 3;

enum class MadeOf {
  Tiles,     ///< Kernels of our own with the worst tile. The first GEMM of a layer has a GELU.
  Calls,     ///< Calls of cuBLASLt without an algorithm. Relu in place of GELU.
  TunedCalls ///< Calls of cuBLASLt with an algorithm of another machine.
};

/// Entry "main": three layers of x = x + fc2(activation(fc1(x))). `weight(i, count)` returns the
/// bytes of weight i, which has `count` elements.
inline SamplePlan gemmChain(DType dtype, MadeOf made, const auto &weight) {
  SamplePlan sample;
  PlanData &plan = sample.plan;
  plan.target = DeviceKind::Cuda;
  plan.gpu = {"NVIDIA H200", 132, false};
  const int64_t size = int64_t(dtypeSize(dtype)), narrow = kM * kNarrow * size,
                wide = kM * kWide * size;
  Bucket bucket;
  bucket.inputs = {{"x", dtype, {kM, kNarrow}, 0}};
  bucket.outputs = {{"y", dtype, {kM, kNarrow}, 0}};
  const auto tensor = [&](TensorRef t) {
    bucket.tensors.push_back(std::move(t));
    return TensorId(bucket.tensors.size() - 1);
  };
  const auto addWeight = [&](std::vector<int64_t> sizes) {
    const auto index = uint32_t(plan.weights.size());
    int64_t count = 1;
    for (const int64_t s : sizes)
      count *= s;
    plan.weights.push_back({.name = "w" + std::to_string(index), .dtype = dtype, .sizes = sizes});
    sample.weights.push_back(weight(index, count));
    return tensor(dense(BufferKind::Weight, index, 0, dtype, sizes));
  };
  const auto aligned = [](int64_t bytes) { return (bytes + 255) / 256 * 256; };
  const uint64_t hidden = 2 * aligned(narrow), workspace = hidden + aligned(wide);
  constexpr int64_t kWorkspace = 4 << 20;
  bucket.arenaBytes = workspace + (made == MadeOf::Tiles ? 0 : kWorkspace);
  const TensorId h = tensor(dense(BufferKind::Arena, 0, hidden, dtype, {kM, kWide}));
  const TensorId space =
      made == MadeOf::Tiles
          ? kNoTensor
          : tensor(dense(BufferKind::Arena, 0, workspace, DType::U8, {kWorkspace}));
  const auto gemm = [&](TensorId x, TensorId residual, TensorId y, int64_t n, int64_t k,
                        bool activates) {
    const TensorId w = addWeight({n, k}), bias = addWeight({n});
    if (made == MadeOf::Tiles) {
      const backend::TiledKernels family = backend::gemmKernels();
      KernelLaunch launch;
      launch.ints = {kM, n, k, int64_t(activates ? Activation::Gelu : Activation::None)};
      backend::setTile(launch, family, dtype,
                       backend::tileChoices(family.tiles, kM, n, k, 132).back());
      launch.reads = {x, w, bias, residual};
      launch.writes = {y};
      launch.writes.resize(findKernel(launch.kernel)->writes, kNoTensor);
      bucket.records.push_back({launch});
      return;
    }
    LibraryCall call = libraryCall({.x = x,
                                    .weight = w,
                                    .bias = bias,
                                    .residual = residual,
                                    .d = y,
                                    .workspace = space,
                                    .relu = activates});
    if (made == MadeOf::TunedCalls)
      call.algorithm.resize(80, std::byte{'x'});
    bucket.records.push_back({std::move(call)});
  };
  TensorId x = tensor(dense(BufferKind::Input, 0, 0, dtype, {kM, kNarrow}));
  for (int layer = 0; layer < kLayers; ++layer) {
    const TensorId y =
        layer + 1 == kLayers
            ? tensor(dense(BufferKind::Output, 0, 0, dtype, {kM, kNarrow}))
            : tensor(dense(BufferKind::Arena, 0, layer * aligned(narrow), dtype, {kM, kNarrow}));
    gemm(x, kNoTensor, h, kWide, kNarrow, true);
    gemm(h, x, y, kNarrow, kWide, false);
    x = y;
  }
  plan.entries = {{"main", {bucket}}};
  return sample;
}

} // namespace cgc::test

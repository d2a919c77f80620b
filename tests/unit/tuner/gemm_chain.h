// A plan for tests of the tuner: three layers of two GEMMs each, with weights of their own.
#pragma once

#include "backend/gemm_record.h"
#include "tests/unit/runtime/sample_plan.h"

namespace cgc::test {

inline constexpr int64_t kChainM = 77, kChainNarrow = 256, kChainWide = 1024;
inline constexpr int kLayers = 3;

/// A GEMM of kChainM dense rows, without its operands.
inline backend::GemmProblem gemmProblem(DType dtype, int64_t n, int64_t k,
                                        Activation activation = Activation::None) {
  return {.dtype = dtype,
          .m = kChainM,
          .n = n,
          .k = k,
          .x = {k, kBufferAlignment},
          .w = {k, kBufferAlignment},
          .y = {n, kBufferAlignment},
          .epilogue = {.activation = activation}};
}

/// The kernels for a problem of f16 or bf16 on an H200, the fastest by the model first.
inline std::vector<backend::GemmKernelChoice> kernelChoices(const backend::GemmProblem &problem) {
  std::vector<backend::GemmKernelChoice> choices;
  for (const backend::GemmChoice &choice : gemmCandidates(problem, {backend::Arch::Sm90a, 132}))
    if (const auto *kernel = std::get_if<backend::GemmKernelChoice>(&choice))
      choices.push_back(*kernel);
  return choices;
}

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
  const int64_t size = int64_t(dtypeSize(dtype)), narrow = kChainM * kChainNarrow * size,
                wide = kChainM * kChainWide * size;
  Bucket bucket;
  bucket.inputs = {{"x", dtype, {kChainM, kChainNarrow}}};
  bucket.outputs = {{"y", dtype, {kChainM, kChainNarrow}}};
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
  const TensorId h = tensor(dense(BufferKind::Arena, 0, hidden, dtype, {kChainM, kChainWide}));
  const TensorId space =
      made == MadeOf::Tiles
          ? kNoTensor
          : tensor(dense(BufferKind::Arena, 0, workspace, DType::U8, {kWorkspace}));
  const auto addGemm = [&](TensorId x, std::optional<TensorId> residual, TensorId y, int64_t n,
                           int64_t k, bool activates) {
    const TensorId w = addWeight({n, k}), bias = addWeight({n});
    const Activation activation = !activates              ? Activation::None
                                  : made == MadeOf::Tiles ? Activation::Gelu
                                                          : Activation::Relu;
    backend::GemmRecord gemm{
        .problem = gemmProblem(dtype, n, k, activation),
        .operands = {.x = x, .w = w, .bias = bias, .residual = residual, .y = y},
        .choice = backend::GemmLibraryChoice{},
        .workspace = space};
    if (made == MadeOf::Tiles)
      gemm.choice = kernelChoices(gemm.problem).back();
    else if (made == MadeOf::TunedCalls)
      gemm.choice = backend::GemmLibraryChoice{std::vector(80, std::byte{'x'})};
    bucket.records.push_back({encodeGemm(gemm)});
  };
  TensorId x = tensor(dense(BufferKind::Input, 0, 0, dtype, {kChainM, kChainNarrow}));
  for (int layer = 0; layer < kLayers; ++layer) {
    const TensorId y = layer + 1 == kLayers
                           ? tensor(dense(BufferKind::Output, 0, 0, dtype, {kChainM, kChainNarrow}))
                           : tensor(dense(BufferKind::Arena, 0, layer * aligned(narrow), dtype,
                                          {kChainM, kChainNarrow}));
    addGemm(x, {}, h, kChainWide, kChainNarrow, true);
    addGemm(h, x, y, kChainNarrow, kChainWide, false);
    x = y;
  }
  plan.entries = {{"main", {bucket}}};
  return sample;
}

} // namespace cgc::test

// The model of a GEMM's time on an H200, or on an A100, which ranks the kernels for it.
#pragma once

#include "backend/gemm.h"

namespace cgc::backend {

/// Up to this M, no persistent kernel is ranked: they have not been measured for so few rows.
inline constexpr int64_t kNonPersistentMaxM = 1536;

/// The kernels of the target's architecture that support the K of `problem`, of f16 or bf16, each
/// with one or two pipeline depths, by increasing estimated time.
std::vector<GemmKernelChoice> rankedKernels(const GemmProblem &problem, const GpuTarget &gpu);

/// The estimated time of `choice`, which can compute `problem`, on a GPU with this many SMs, in
/// clock cycles.
double gemmClocks(const GemmProblem &problem, const GemmKernelChoice &choice,
                  int64_t multiprocessors);

} // namespace cgc::backend

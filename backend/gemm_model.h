// The model of a GEMM's time on an H200, which ranks the kernels for it.
#pragma once

#include "backend/gemm.h"

namespace cgc::backend {

/// Up to this M, no persistent kernel is ranked: they have not been measured for so few rows.
inline constexpr int64_t kNonPersistentMaxM = 1536;

/// The kernels that support the K of `problem`, of f16 or bf16, each with one or two pipeline
/// depths, by increasing estimated time on a GPU with this many SMs.
std::vector<GemmKernelChoice> rankedKernels(const GemmProblem &problem, int64_t multiprocessors);

/// The estimated time of `choice`, which can compute `problem`, in clock cycles of an H200.
double gemmClocks(const GemmProblem &problem, const GemmKernelChoice &choice,
                  int64_t multiprocessors);

} // namespace cgc::backend

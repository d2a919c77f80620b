// GemmProblem: what a GEMM computes; its operands; and the ways to compute it, ranked.
#pragma once

#include "backend/lower_options.h"
#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/pointwise/activation.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cgc::backend {

/// y = activation(normalize(x) w^T + bias) + residual, without the operands' places. x is [M,K], w
/// is [N,K], y and the residual are [M,N], all of `dtype` and with dense columns. Two GEMMs of a
/// bucket with equal problems can be computed in the same way.
struct GemmProblem {
  /// Where the rows of a matrix lie.
  struct Rows {
    int64_t stride = 0;     ///< From row to row in elements.
    uint64_t alignment = 0; ///< The first row lies at a multiple of this, in bytes: a power of two.
    bool operator==(const Rows &) const = default;
  };
  struct Epilogue {
    bool bias = false, residual = false;
    Activation activation = Activation::None;
    /// Each row of x is normalized first, to zero mean and unit variance, with this added to the
    /// variance. The rows of w sum to 0, the row statistics of x are an operand, and there is no
    /// residual.
    std::optional<double> normEps = {};
    bool rowStatistics = false; ///< The row statistics of y are a result too.
    bool operator==(const Epilogue &) const = default;
  };

  DType dtype = DType::F16;
  int64_t m = 0, n = 0, k = 0;
  Rows x, w, y;
  Rows residual; ///< Only with epilogue.residual.
  Epilogue epilogue;
  bool tf32 = false; ///< f32 only: a library may round operands to 10 bits of mantissa.

  double multiplications() const { return double(m) * double(n) * double(k); }
  bool operator==(const GemmProblem &) const = default;
};

/// "gemm f16 [77,768] x [3072,768], bias, activation 1": equal for equal problems only.
std::string describe(const GemmProblem &problem);

/// The operands of a GEMM: a Place each while a bucket is lowered, a TensorId in a record.
template <class T> struct GemmOperands {
  T x, w;
  std::optional<T> bias = {}, residual = {};
  std::optional<T> xStatistics = {}; ///< Only with GemmProblem::Epilogue::normEps.
  T y;
  std::optional<T> yStatistics = {};
};

/// A kernel of our own, the stages of its pipeline, and the SMs that its grid is for.
struct GemmKernelChoice {
  GemmKernel kernel;
  uint32_t stages, multiprocessors;

  /// "tile 128x88_2 with 6 stages"
  std::string name() const;
};
/// A call of cuBLASLt.
struct GemmLibraryChoice {
  /// Of CublasLt::candidates(). Empty: the library's heuristic chooses.
  std::vector<std::byte> algorithm;
};
/// A way to compute a GEMM.
using GemmChoice = std::variant<GemmKernelChoice, GemmLibraryChoice>;

/// The ways to compute all of `problem` on `gpu`, the one that a plan uses by default first.
/// Kernels of our own are ranked by the estimated time of a model (gemm_model.h). Empty if only
/// several records can compute it. A kernel's check may still refuse the operands.
std::vector<GemmChoice> gemmCandidates(const GemmProblem &problem, const GpuTarget &gpu);

/// Whether one call of cuBLASLt computes all of `problem`, whatever its size.
bool fitsLibrary(const GemmProblem &problem);
/// Whether `problem` is so large that cuBLASLt is preferred if it fits.
bool prefersLibrary(const GemmProblem &problem);

/// Bytes of the workspace of a cuBLASLt call, as NVIDIA recommends for these GPUs.
int64_t libraryWorkspaceBytes(Arch arch);

} // namespace cgc::backend

// GemmProblem: what any GEMM computes, forward or backward; its operands; and the ways to compute
// it, ranked.
#pragma once

#include "backend/lower_options.h"
#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/pointwise/activation.h"

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cgc::backend {

/// y = activation(normalize(x) w^T + bias) + residual, or a convolution, without the operands'
/// places. x is [M,K], w is [N,K], y and the residual are [M,N]. x, w, the bias and the residual
/// have the element type `dtype`. Two GEMMs of a bucket with equal problems can be computed in the
/// same way.
struct GemmProblem {
  /// Where a matrix lies.
  struct Layout {
    int64_t stride = 0;     ///< From row to row in elements; from column to column if transposed.
    uint64_t alignment = 0; ///< It begins at a multiple of this, in bytes: a power of two.
    /// Its columns are dense instead of its rows, so that it is not K-major. Only x and w.
    bool transposed = false;
    bool operator==(const Layout &) const = default;
  };
  struct Epilogue {
    bool bias = false, residual = false;
    bool gates = false; ///< The residual is a factor instead of an addend. Not with windows.
    Activation activation = Activation::None;
    /// Each row of x is normalized first, to zero mean and unit variance, with this added to the
    /// variance. The rows of w sum to 0, the row statistics of x are an operand, and there is no
    /// residual.
    std::optional<double> normEps = {};
    bool rowStatistics = false; ///< The row statistics of y are a result too.
    bool xSums = false;         ///< The sums of the rows of x are a result too.
    /// The product and the sums are gradients of a weight and a bias, and the results are these
    /// after a step of SGD with this weight decay.
    std::optional<double> sgdWeightDecay = {};
    /// The operand x is images, dense [images, height, width, channels]; the rows of X are their
    /// windows. w is dense [N, kernel height, kernel width, channels]. K is convK(). The
    /// residual is added before the activation.
    std::optional<ConvWindows> windows = {};
    bool operator==(const Epilogue &) const = default;
  };

  DType dtype = DType::F16;
  std::optional<DType> yDType = {}; ///< That of y if it is another one.
  int64_t m = 0, n = 0, k = 0;
  std::array<int64_t, 4> images = {}; ///< Their sizes, with epilogue.windows.
  Layout x, w, y;
  Layout residual; ///< Only with epilogue.residual.
  Epilogue epilogue;
  bool tf32 = false; ///< f32 only: a library may round operands to 10 bits of mantissa.

  double multiplications() const { return double(m) * double(n) * double(k); }
  bool operator==(const GemmProblem &) const = default;
};

/// "gemm f16 [77,768] x [3072,768], bias, activation 1", or "conv f16 [1,56,56,64] to 56x56x64,
/// kernel 3x3, stride 1x1, padding 1x1, dilation 1x1": equal for equal problems only.
std::string describe(const GemmProblem &problem);

/// The operands of a GEMM: a Place each while a bucket is lowered, a TensorId in a record.
template <class T> struct GemmOperands {
  T x, w;
  std::optional<T> bias = {}, residual = {};
  std::optional<T> xStatistics = {}; ///< Only with GemmProblem::Epilogue::normEps.
  /// Only with GemmProblem::Epilogue::sgdWeightDecay: the learning rate, f32, the weight [M,N] and
  /// the bias [M] before the step, and the number of the step, i64.
  std::optional<T> lr = {}, oldWeight = {}, oldBias = {}, step = {};
  T y;
  std::optional<T> yStatistics = {};
  std::optional<T> xSums = {};    ///< [M]: the new bias in a step of SGD.
  std::optional<T> nextStep = {}; ///< `step` plus 1.
};

/// The operands with `map(operand)` in place of each, which is called in their order.
template <class T, class Map> auto mapOperands(const GemmOperands<T> &from, Map map) {
  const auto optional = [&](const std::optional<T> &operand) {
    return operand ? std::optional(map(*operand)) : std::nullopt;
  };
  return GemmOperands<decltype(map(from.x))>{map(from.x),
                                             map(from.w),
                                             optional(from.bias),
                                             optional(from.residual),
                                             optional(from.xStatistics),
                                             optional(from.lr),
                                             optional(from.oldWeight),
                                             optional(from.oldBias),
                                             optional(from.step),
                                             map(from.y),
                                             optional(from.yStatistics),
                                             optional(from.xSums),
                                             optional(from.nextStep)};
}

/// The problem of these operands, of which `epilogue` has what they do not say: the activation, the
/// eps, the weight decay and the windows. Nothing if x, w, y or the residual is no matrix whose
/// rows, or those of its transpose for x and w, are dense and apart; or if x and w, or x and the
/// residual, differ in element type.
std::optional<GemmProblem> gemmProblem(const GemmOperands<TensorRef> &operands,
                                       GemmProblem::Epilogue epilogue);

/// A kernel of our own for f16 or bf16, the stages of its pipeline, and the SMs that its grid is
/// for.
struct GemmKernelChoice {
  GemmKernel kernel;
  uint32_t stages, multiprocessors;

  /// "tile 128x88_2 with 6 stages"
  std::string name() const;
};
/// A kernel of gemm_f32_* or, for a step of SGD, gemm_sgd_f32_*.
struct GemmF32Choice {
  int64_t splitK; ///< Of kGemmF32Splits.

  /// "gemm_f32_3", also for a step of SGD
  std::string name() const;
};
/// A call of cuBLASLt.
struct GemmLibraryChoice {
  /// Of CublasLt::candidates(). Empty: the library's heuristic chooses.
  std::vector<std::byte> algorithm;
};
/// A way to compute a GEMM.
using GemmChoice = std::variant<GemmKernelChoice, GemmF32Choice, GemmLibraryChoice>;

/// The ways to compute `problem` on `gpu`, the one that a plan uses by default first: kernels of
/// our own, those for f16 and bf16 ranked by the estimated time of a model (gemm_model.h), and
/// cuBLASLt. Each computes fusedPart(). A kernel's check may still refuse the operands.
std::vector<GemmChoice> gemmCandidates(const GemmProblem &problem, const GpuTarget &gpu);

/// The part of `problem` that `choice`, one of its candidates, computes: all but for steps of the
/// epilogue that cuBLASLt does not fuse.
GemmProblem fusedPart(const GemmProblem &problem, const GemmChoice &choice);

/// Whether `problem` is so large that cuBLASLt is preferred if it computes all of it but for row
/// statistics.
bool prefersLibrary(const GemmProblem &problem);

/// Bytes of the workspace of a cuBLASLt call, as NVIDIA recommends for these GPUs.
int64_t libraryWorkspaceBytes(Arch arch);

} // namespace cgc::backend

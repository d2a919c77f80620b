// GemmProblem: its text, and the ways to compute it.
#include "backend/gemm.h"

#include "backend/gemm_model.h"
#include "runtime/kernels/gemm/gemm_f32.h"
#include "runtime/plan/gemm_call.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <iterator>

namespace cgc::backend {
namespace {

/// From this many multiplications on, cuBLASLt computes a GEMM that it can fuse. Below, a tower
/// with a norm before each second GEMM, as OpenCLIP's, is faster with our kernels, which need no
/// layer_norm: measured up to 64 images of ViT-L-14, 6.9e10, on an H200
/// (docs/log/2026-11-22-tile-model.md). A large GEMM that is not next to a norm may be slower than
/// cuBLASLt's; `cgc tune` decides that by measurement.
constexpr double kMultiplicationsForLibrary = 1e11;

/// The GEMMs of gemm_f32_*, whose launches and loads take more time than their multiplications. For
/// as many multiplications, or for one row, the first version of the kernel was slower than
/// cuBLASLt; the present one has been measured in the step of Linear alone
/// (docs/log/2026-11-25-small-products.md).
constexpr double kLeastLargeMultiplications = 1 << 27;
constexpr int64_t kLeastSmallExtent = 16;

/// About the clusters of `ctas` CTAs that run at a time with each CTA on an SM of its own. A
/// cluster stays within a GPC, of 18 SMs at most. If fewer clusters fit, some SMs run two CTAs.
constexpr int64_t clustersAtATime(int64_t ctas, int64_t multiprocessors) {
  return multiprocessors / 18 * (18 / ctas);
}

/// The layout of a matrix; nothing if its rows or columns are not dense, or overlap.
std::optional<GemmProblem::Layout> layoutOf(const TensorRef &matrix, bool mayBeTransposed) {
  if (matrix.sizes.size() != 2)
    return std::nullopt;
  const bool transposed = mayBeTransposed && isTransposed(matrix);
  const size_t inner = transposed ? 0 : 1;
  const int64_t stride = transposed ? matrix.strides[1] : rowStride(matrix);
  const auto fits = [](int64_t size) { return size > 0 && size <= INT_MAX; };
  if (!fits(matrix.sizes[0]) || !fits(matrix.sizes[1]) ||
      (matrix.strides[inner] != 1 && matrix.sizes[inner] != 1) || stride < matrix.sizes[inner])
    return std::nullopt;
  return GemmProblem::Layout{stride, alignmentOf(kBufferAlignment | matrix.slot.offset),
                             transposed};
}

/// The layout of images or of W of a convolution, which is dense and not empty; nothing if it is
/// neither. Its stride is the number of channels.
std::optional<GemmProblem::Layout> denseLayoutOf(const TensorRef &tensor) {
  if (tensor.sizes.size() != 4 || std::ranges::count(tensor.sizes, 0) > 0 ||
      !isDense(tensor.sizes, tensor.strides))
    return std::nullopt;
  return GemmProblem::Layout{tensor.sizes[3], alignmentOf(kBufferAlignment | tensor.slot.offset)};
}

std::string sizesText(llvm::ArrayRef<int64_t> sizes, const char *separator) {
  std::string text;
  for (const int64_t size : sizes)
    text += (text.empty() ? "" : separator) + std::to_string(size);
  return text;
}

std::string matrixText(int64_t rows, int64_t columns, const GemmProblem::Layout &at) {
  std::string text = "[" + std::to_string(rows) + "," + std::to_string(columns) + "]";
  if (at.transposed)
    text += " transposed";
  if (at.stride != (at.transposed ? rows : columns))
    text += " by " + std::to_string(at.stride);
  // An algorithm of cuBLASLt requires operands of at least this alignment.
  if (at.alignment < kBufferAlignment)
    text += " at " + std::to_string(at.alignment);
  return text;
}

/// The shortest text that reads back as `number`.
std::string shortest(double number) {
  char text[32];
  return {text, std::to_chars(text, std::end(text), number).ptr};
}

/// Whether both matrices are K-major and y and the epilogue are those of gemm_* and gemm_norm_*.
/// Their checks decide about the operands.
bool mayFitTiles(const GemmProblem &problem) {
  return (problem.dtype == DType::F16 || problem.dtype == DType::BF16) && !problem.yDType &&
         !problem.x.transposed && !problem.w.transposed && !problem.epilogue.xSums &&
         !problem.epilogue.sgdWeightDecay && problem.n % 8 == 0 && problem.k % 8 == 0;
}

/// Whether `problem` is one that gemm_f32_* or gemm_sgd_f32_* computes faster than cuBLASLt.
bool fitsF32Kernels(const GemmProblem &problem) {
  GemmProblem::Epilogue others = problem.epilogue;
  others.bias = others.xSums = false;
  others.sgdWeightDecay.reset();
  return problem.dtype == DType::F32 && !problem.yDType && !problem.tf32 &&
         others == GemmProblem::Epilogue() &&
         problem.multiplications() < kLeastLargeMultiplications &&
         std::min(problem.m, problem.n) >= kLeastSmallExtent;
}

/// The kernels for such a problem, with a step of K at least for each CTA. By default as many CTAs
/// share K as leave each one on an SM.
std::vector<GemmChoice> f32Kernels(const GemmProblem &problem, int64_t multiprocessors) {
  const int64_t tiles = gemmF32Tiles(problem.m) * gemmF32Tiles(problem.n);
  std::vector<GemmChoice> choices;
  for (const int64_t splitK : kGemmF32Splits)
    if (splitK == 1 || splitK * kGemmF32Step <= problem.k)
      choices.insert(tiles <= clustersAtATime(splitK, multiprocessors) ? choices.begin()
                                                                       : choices.end(),
                     GemmF32Choice{splitK});
  return choices;
}

/// Whether one call of cuBLASLt computes `problem`, but for steps of the epilogue that follow it.
bool fitsLibrary(const GemmProblem &problem) {
  const GemmProblem::Epilogue &epilogue = problem.epilogue;
  const bool fitsY =
      !problem.yDType || (problem.yDType == DType::F32 && epilogue == GemmProblem::Epilogue());
  return fitsY && !epilogue.normEps && !epilogue.windows && !epilogue.xSums &&
         !epilogue.sgdWeightDecay &&
         (problem.dtype == DType::F16 || problem.dtype == DType::BF16 ||
          problem.dtype == DType::F32);
}

} // namespace

std::optional<GemmProblem> gemmProblem(const GemmOperands<TensorRef> &operands,
                                       GemmProblem::Epilogue epilogue) {
  const TensorRef &x = operands.x, &w = operands.w, &y = operands.y;
  const auto &residual = operands.residual;
  const auto &windows = epilogue.windows;
  const auto layoutX = windows ? denseLayoutOf(x) : layoutOf(x, true),
             layoutW = windows ? denseLayoutOf(w) : layoutOf(w, true), layoutY = layoutOf(y, false),
             layoutResidual = residual ? layoutOf(*residual, false) : GemmProblem::Layout();
  if (!layoutX || !layoutW || !layoutY || !layoutResidual || w.dtype != x.dtype ||
      (residual && residual->dtype != x.dtype))
    return std::nullopt;
  epilogue.bias = operands.bias.has_value();
  epilogue.residual = residual.has_value();
  epilogue.gates &= epilogue.residual;
  epilogue.rowStatistics = operands.yStatistics.has_value();
  epilogue.xSums = operands.xSums.has_value();
  GemmProblem problem{.dtype = x.dtype,
                      .yDType = y.dtype == x.dtype ? std::nullopt : std::optional(y.dtype),
                      .m = x.sizes[0],
                      .n = w.sizes[0],
                      .k = x.sizes[1],
                      .x = *layoutX,
                      .w = *layoutW,
                      .y = *layoutY,
                      .residual = *layoutResidual,
                      .epilogue = epilogue};
  if (windows) {
    problem.m = y.sizes[0];
    problem.k = convK(*windows, x.sizes[3]);
    std::ranges::copy(x.sizes, problem.images.begin());
  }
  return problem;
}

std::string describe(const GemmProblem &p) {
  const GemmProblem::Epilogue &epilogue = p.epilogue;
  std::string text = std::string(epilogue.windows   ? "conv "
                                 : epilogue.normEps ? "gemm_norm "
                                                    : "gemm ") +
                     std::string(dtypeName(p.dtype)) + " ";
  if (const auto &windows = epilogue.windows) {
    text += "[" + sizesText(p.images, ",") + "] to " + sizesText(windows->result, "x") + "x" +
            std::to_string(p.n);
    for (const auto &[name, of] : {std::pair("kernel", windows->kernel),
                                   {"stride", windows->stride},
                                   {"padding", windows->padding},
                                   {"dilation", windows->dilation}})
      text += std::string(", ") + name + " " + sizesText(of, "x");
  } else {
    text += matrixText(p.m, p.k, p.x) + " x " + matrixText(p.n, p.k, p.w);
  }
  const std::string y = matrixText(p.m, p.n, p.y);
  if (p.yDType)
    text += ", to " + std::string(dtypeName(*p.yDType)) + " " + y;
  else if (y.find(' ') != std::string::npos)
    text += ", to " + y;
  if (epilogue.bias)
    text += ", bias";
  if (epilogue.activation != Activation::None)
    text += ", activation " + std::to_string(int(epilogue.activation));
  if (epilogue.residual)
    text += (epilogue.gates ? ", gate " : ", residual ") + matrixText(p.m, p.n, p.residual);
  if (epilogue.normEps)
    text += ", eps " + shortest(*epilogue.normEps);
  if (epilogue.rowStatistics)
    text += ", row statistics";
  if (epilogue.xSums)
    text += ", sums of x";
  if (epilogue.sgdWeightDecay)
    text += ", sgd with weight decay " + shortest(*epilogue.sgdWeightDecay);
  return p.tf32 ? text + ", tf32" : text;
}

std::string GemmKernelChoice::name() const {
  return "tile " + std::string(kernel.tile->name) + " with " + std::to_string(stages) + " stages";
}

std::string GemmF32Choice::name() const {
  return "gemm_f32_" + std::to_string(splitK);
}

GemmProblem fusedPart(const GemmProblem &problem, const GemmChoice &choice) {
  GemmProblem part = problem;
  if (!std::holds_alternative<GemmLibraryChoice>(choice))
    return part;
  GemmProblem::Epilogue &epilogue = part.epilogue;
  epilogue.rowStatistics = false;
  if (epilogue.activation != Activation::None || epilogue.gates) {
    // cuBLASLt's activation follows the residual, and its GELU is the approximation by tanh.
    epilogue.residual = epilogue.gates = false;
    part.residual = {};
    if (epilogue.activation != Activation::Relu)
      epilogue.activation = Activation::None;
  }
  return part;
}

bool prefersLibrary(const GemmProblem &problem) {
  GemmProblem plain = problem;
  plain.epilogue.rowStatistics = false;
  return fitsLibrary(plain) && fusedPart(plain, GemmLibraryChoice()) == plain &&
         plain.multiplications() >= kMultiplicationsForLibrary;
}

std::vector<GemmChoice> gemmCandidates(const GemmProblem &problem, const GpuTarget &gpu) {
  std::vector<GemmChoice> candidates;
  if (mayFitTiles(problem))
    for (const GemmKernelChoice &choice : rankedKernels(problem, gpu))
      candidates.emplace_back(choice);
  if (gpu.arch == Arch::Sm90a && fitsF32Kernels(problem))
    candidates = f32Kernels(problem, gpu.multiprocessors);
  // Before Hopper cuBLASLt is the default: towers with the tiles of mma took longer on an H200.
  const bool isLibraryFirst = gpu.arch != Arch::Sm90a || prefersLibrary(problem);
  if (fitsLibrary(problem))
    candidates.insert(isLibraryFirst ? candidates.begin() : candidates.end(), GemmLibraryChoice{});
  return candidates;
}

int64_t libraryWorkspaceBytes(Arch arch) {
  return arch == Arch::Sm90a ? 32 << 20 : 4 << 20;
}

} // namespace cgc::backend

// GemmProblem: its text, and the ways to compute it.
#include "backend/gemm.h"

#include "backend/gemm_model.h"
#include "runtime/plan/plan.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace cgc::backend {
namespace {

/// From this many multiplications on, cuBLASLt computes a GEMM that it can fuse. Below, a tower
/// with a norm before each second GEMM, as OpenCLIP's, is faster with our kernels, which need no
/// layer_norm: measured up to 64 images of ViT-L-14, 6.9e10, on an H200
/// (docs/log/2026-11-22-tile-model.md). A large GEMM that is not next to a norm may be slower than
/// cuBLASLt's; `cgc tune` decides that by measurement.
constexpr double kMultiplicationsForLibrary = 1e11;

std::string matrixText(int64_t rows, int64_t columns, const GemmProblem::Rows &at) {
  std::string text = "[" + std::to_string(rows) + "," + std::to_string(columns) + "]";
  if (at.stride != columns)
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

/// Whether kernels of our own may compute `problem`. Their checks decide about the operands.
bool mayFitKernels(const GemmProblem &problem) {
  return (problem.dtype == DType::F16 || problem.dtype == DType::BF16) && problem.n % 8 == 0 &&
         problem.k % 8 == 0;
}

} // namespace

std::string describe(const GemmProblem &p) {
  const GemmProblem::Epilogue &epilogue = p.epilogue;
  std::string text = std::string(epilogue.normEps ? "gemm_norm " : "gemm ") +
                     std::string(dtypeName(p.dtype)) + " " + matrixText(p.m, p.k, p.x) + " x " +
                     matrixText(p.n, p.k, p.w);
  if (const std::string y = matrixText(p.m, p.n, p.y); y.find(' ') != std::string::npos)
    text += ", to " + y;
  if (epilogue.bias)
    text += ", bias";
  if (epilogue.activation != Activation::None)
    text += ", activation " + std::to_string(int(epilogue.activation));
  if (epilogue.residual)
    text += ", residual " + matrixText(p.m, p.n, p.residual);
  if (epilogue.normEps)
    text += ", eps " + shortest(*epilogue.normEps);
  if (epilogue.rowStatistics)
    text += ", row statistics";
  return p.tf32 ? text + ", tf32" : text;
}

std::string GemmKernelChoice::name() const {
  return "tile " + std::string(kernel.tile->name) + " with " + std::to_string(stages) + " stages";
}

bool fitsLibrary(const GemmProblem &problem) {
  // cuBLASLt's GELU is the approximation by tanh, and its activation follows the residual.
  const GemmProblem::Epilogue &epilogue = problem.epilogue;
  return !epilogue.normEps && !epilogue.rowStatistics &&
         (epilogue.activation == Activation::None ||
          (epilogue.activation == Activation::Relu && !epilogue.residual)) &&
         (problem.dtype == DType::F16 || problem.dtype == DType::BF16 ||
          problem.dtype == DType::F32);
}

bool prefersLibrary(const GemmProblem &problem) {
  return fitsLibrary(problem) && problem.multiplications() >= kMultiplicationsForLibrary;
}

std::vector<GemmChoice> gemmCandidates(const GemmProblem &problem, const GpuTarget &gpu) {
  std::vector<GemmChoice> candidates;
  if (gpu.arch == Arch::Sm90a && mayFitKernels(problem))
    for (const GemmKernelChoice &choice : rankedKernels(problem, gpu.multiprocessors))
      candidates.push_back(choice);
  if (fitsLibrary(problem))
    candidates.insert(prefersLibrary(problem) ? candidates.begin() : candidates.end(),
                      GemmLibraryChoice{});
  return candidates;
}

int64_t libraryWorkspaceBytes(Arch arch) {
  return arch == Arch::Sm90a ? 32 << 20 : 4 << 20;
}

} // namespace cgc::backend

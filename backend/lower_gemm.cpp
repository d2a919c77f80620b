// Lowers GEMMs: on cuda to our own kernels or cuBLASLt, otherwise to LibTorch.
#include "backend/lower_gemm.h"

#include "backend/gemm_model.h"
#include "backend/gemm_record.h"
#include "backend/kernels.h"
#include "runtime/base/check.h"
#include "runtime/kernels/gemm/gemm_f32.h"
#include "runtime/plan/gemm_call.h"

#include <climits>

namespace cgc::backend {
namespace {

/// With an M up to this a GEMM is bound by loading its weights, so rounding its operands to TF32
/// would save no time. On an H200 that holds up to M = 28, for f32 weights at 4.8 TB/s and 67
/// TFLOP/s without tensor cores.
constexpr int64_t kRowsBehindWeights = 16;

/// Up to this M, gemm_norm is used with any tile, because a separate layer_norm costs mostly its
/// launch. Beyond, it is used with persistent tiles only.
constexpr int64_t kNormNonPersistentMaxM = kNonPersistentMaxM;

/// The products of lowerSmallGemm(). For as many multiplications, or for one row, the first version
/// of the kernel was slower than cuBLASLt; the present one has been measured in the step of Linear
/// alone (docs/log/2026-11-25-small-products.md).
constexpr double kLeastLargeMultiplications = 1 << 27;
constexpr int64_t kLeastSmallExtent = 16;

/// About the clusters of `ctas` CTAs that run at a time with each CTA on an SM of its own. A
/// cluster stays within a GPC, of 18 SMs at most. If fewer clusters fit, some SMs run two CTAs.
constexpr int64_t clustersAtATime(int64_t ctas, int64_t multiprocessors) {
  return multiprocessors / 18 * (18 / ctas);
}

/// `place` as a matrix with all but the last dimension merged; nothing if its strides forbid it.
std::optional<Place> asMatrix(Place place) {
  if (place.sizes.size() == 1) {
    place.strides.insert(place.strides.begin(), place.sizes[0] * place.strides[0]);
    place.sizes.insert(place.sizes.begin(), 1);
  }
  return place.sizes.size() < 2 ? std::nullopt : mergeLeading(place, 2);
}

/// Whether a matrix is not empty and its rows are dense and do not overlap.
bool hasDenseRows(const Place &matrix) {
  auto fits = [](int64_t size) { return size > 0 && size <= INT_MAX; };
  return fits(matrix.sizes[0]) && fits(matrix.sizes[1]) &&
         (matrix.strides[1] == 1 || matrix.sizes[1] == 1) &&
         (matrix.strides[0] >= matrix.sizes[1] || matrix.sizes[0] == 1);
}

/// The operands as matrices; without the residual if that is no matrix with dense rows. Nothing if
/// another operand is no matrix.
std::optional<GemmPlaces> matricesOf(const GemmPlaces &operands) {
  std::optional<Place> x = asMatrix(operands.x), y = asMatrix(operands.y);
  if (!x || !y || operands.w.sizes.size() != 2)
    return std::nullopt;
  GemmPlaces matrices = operands;
  matrices.x = std::move(*x);
  matrices.y = std::move(*y);
  if (operands.residual) {
    matrices.residual = asMatrix(*operands.residual);
    if (matrices.residual &&
        (matrices.residual->dtype != matrices.x.dtype || !hasDenseRows(*matrices.residual)))
      matrices.residual.reset();
  }
  return matrices;
}

GemmProblem::Rows rowsOf(const Place &matrix) {
  return {matrix.sizes[0] == 1 ? matrix.sizes[1] : matrix.strides[0],
          alignmentOf(kBufferAlignment | matrix.offset)};
}

/// The problem of these matrices; nothing if one of them has other rows than dense ones of the
/// dtype of x.
std::optional<GemmProblem> problemOf(const GemmPlaces &matrices, Activation activation,
                                     std::optional<double> normEps, const BucketBuilder &builder) {
  const Place &x = matrices.x, &w = matrices.w, &y = matrices.y;
  for (const Place *matrix : {&x, &w, &y})
    if (matrix->dtype != x.dtype || !hasDenseRows(*matrix))
      return std::nullopt;
  return GemmProblem{
      .dtype = x.dtype,
      .m = x.sizes[0],
      .n = w.sizes[0],
      .k = w.sizes[1],
      .x = rowsOf(x),
      .w = rowsOf(w),
      .y = rowsOf(y),
      .residual = matrices.residual ? rowsOf(*matrices.residual) : GemmProblem::Rows(),
      .epilogue = {.bias = matrices.bias.has_value(),
                   .residual = matrices.residual.has_value(),
                   .activation = activation,
                   .normEps = normEps},
      .tf32 = builder.tf32() && x.dtype == DType::F32 && x.sizes[0] > kRowsBehindWeights};
}

/// Whether cuBLASLt can read the bias, if there is one.
bool hasLibraryBias(const GemmPlaces &matrices) {
  const std::optional<Place> &bias = matrices.bias;
  return !bias || (bias->dtype == matrices.x.dtype && bias->type().isContiguous() &&
                   bias->offset % kBiasAlignment == 0);
}

/// Adds the record with which `choice` computes `problem`. Returns false and adds nothing if it
/// does not take these operands.
bool recordGemm(const GemmProblem &problem, const GemmChoice &choice, const GemmPlaces &matrices,
                BucketBuilder &builder) {
  if (const auto *kernel = std::get_if<GemmKernelChoice>(&choice))
    return launch(gemmLaunch(problem, *kernel), gemmTensors(problem, matrices), builder);
  if (!hasLibraryBias(matrices))
    return false;
  const auto tensor = [&](const std::optional<Place> &place) {
    return place ? std::optional(builder.tensor(*place)) : std::nullopt;
  };
  const GemmOperands<TensorId> operands{.x = builder.tensor(matrices.x),
                                        .w = builder.tensor(matrices.w),
                                        .bias = tensor(matrices.bias),
                                        .residual = tensor(matrices.residual),
                                        .y = builder.tensor(matrices.y)};
  const TensorId workspace =
      builder.tensor(builder.temporary(DType::U8, {libraryWorkspaceBytes(builder.arch())}));
  builder.record({encodeGemm({problem, operands, choice, workspace})});
  return true;
}

/// Adds one record that computes the GEMM with as much of its epilogue as it fuses. Returns nothing
/// and adds nothing if neither a kernel nor cuBLASLt takes the operands.
std::optional<UnfusedEpilogue> lowerToOneRecord(const GemmPlaces &operands,
                                                const GemmPlaces &matrices, Activation activation,
                                                BucketBuilder &builder) {
  if (activation == Activation::None && !operands.residual && !operands.yStatistics &&
      lowerSmallGemm({.a = matrices.x, .b = matrices.w, .bias = matrices.bias, .y = matrices.y},
                     builder))
    return UnfusedEpilogue{};
  // Row statistics of y do not decide which way is used: for large GEMMs cuBLASLt, which cannot
  // write them, saves more than a separate layer_norm costs.
  const auto problem = problemOf(matrices, activation, {}, builder);
  if (!problem)
    return std::nullopt;
  if (matrices.residual.has_value() == operands.residual.has_value())
    for (const GemmChoice &choice : gemmCandidates(*problem, builder.gpu()))
      if (recordGemm(*problem, choice, matrices, builder))
        return UnfusedEpilogue{.rowStatistics = operands.yStatistics &&
                                                std::holds_alternative<GemmLibraryChoice>(choice)};
  // The part of the epilogue that cuBLASLt fuses.
  GemmPlaces part = matrices;
  if (activation != Activation::None)
    part.residual.reset();
  const bool fusesActivation = activation == Activation::None || activation == Activation::Relu;
  const auto partial =
      problemOf(part, fusesActivation ? activation : Activation::None, {}, builder);
  if (!fitsLibrary(*partial) || !recordGemm(*partial, GemmLibraryChoice{}, part, builder))
    return std::nullopt;
  return UnfusedEpilogue{!fusesActivation, operands.residual && !part.residual,
                         operands.yStatistics.has_value()};
}

UnfusedEpilogue lowerToAten(const GemmPlaces &p, const std::optional<GemmPlaces> &matrices,
                            Activation activation, BucketBuilder &builder) {
  UnfusedEpilogue remainder{activation != Activation::None, p.residual.has_value(),
                            p.yStatistics.has_value()};
  auto bias = [&]() -> AtenArg {
    return p.bias ? AtenArg(builder.tensor(*p.bias)) : AtenArg(NoneArg{});
  };
  if (!matrices || p.x.sizes.size() < 2) {
    builder.callThenCopy("aten::linear", "", {builder.tensor(p.x), builder.tensor(p.w), bias()},
                         {p.y});
    return remainder;
  }
  AtenArg a = builder.tensor(matrices->x), b = builder.tensor(transposed(matrices->w));
  if (p.bias)
    builder.callInto("aten::addmm", "out", {bias(), a, b, int64_t{1}, int64_t{1}}, matrices->y);
  else
    builder.callInto("aten::mm", "out", {a, b}, matrices->y);
  return remainder;
}

/// A GEMM that a kernel of gemm_norm_* computes.
struct NormGemm {
  KernelLaunch launch;
  RecordTensors tensors;
};

/// The one place that decides whether a kernel normalizes the rows of x: as lowersToNormGemm().
std::optional<NormGemm> normGemmOf(const GemmPlaces &operands, Activation activation, double eps,
                                   const BucketBuilder &builder) {
  CGC_CHECK(!operands.residual && "cgc.norm_linear has none");
  const std::optional<GemmPlaces> matrices = matricesOf(operands);
  const auto problem =
      matrices ? problemOf(*matrices, activation, eps, builder) : std::optional<GemmProblem>();
  const std::vector<GemmChoice> candidates =
      problem ? gemmCandidates(*problem, builder.gpu()) : std::vector<GemmChoice>();
  if (candidates.empty())
    return std::nullopt;
  const auto &choice = std::get<GemmKernelChoice>(candidates.front());
  if (problem->m > kNormNonPersistentMaxM &&
      (!choice.kernel.tile->persistent ||
       prefersLibrary(*problemOf(*matrices, activation, {}, builder))))
    return std::nullopt;
  NormGemm gemm{gemmLaunch(*problem, choice), gemmTensors(*problem, *matrices)};
  return takes(gemm.launch, gemm.tensors, builder) ? std::optional(std::move(gemm)) : std::nullopt;
}

} // namespace

Result<UnfusedEpilogue> lowerGemm(const GemmPlaces &operands, Activation activation,
                                  BucketBuilder &builder) {
  const std::optional<GemmPlaces> matrices = matricesOf(operands);
  if (builder.target() == DeviceKind::Cuda && matrices)
    if (const auto remainder = lowerToOneRecord(operands, *matrices, activation, builder))
      return *remainder;
  return lowerToAten(operands, matrices, activation, builder);
}

bool lowerSmallGemm(const SmallGemm &gemm, BucketBuilder &builder,
                    const std::optional<SmallGemmUpdate> &update) {
  if (gemm.a.dtype != DType::F32 || gemm.a.sizes.size() != 2 || gemm.b.sizes.size() != 2 ||
      builder.tf32())
    return false;
  const int64_t m = gemm.a.sizes[0], n = gemm.b.sizes[0], k = gemm.a.sizes[1];
  if (double(m) * double(n) * double(k) >= kLeastLargeMultiplications ||
      std::min(m, n) < kLeastSmallExtent)
    return false;
  // One CTA on an SM, with a step of K at least.
  int64_t split = 1;
  for (const int64_t more : kGemmF32Splits)
    if (gemmF32Tiles(m) * gemmF32Tiles(n) <= clustersAtATime(more, builder.multiprocessors()) &&
        more * kGemmF32Step <= k)
      split = more;
  KernelLaunch record =
      launchOf(*findKernel((update ? "gemm_sgd_f32_" : "gemm_f32_") + std::to_string(split)));
  record.grid[0] = uint32_t(gemmF32Tiles(n) * split);
  record.grid[1] = uint32_t(gemmF32Tiles(m));
  record.block[0] = kGemmF32Threads;
  record.sharedBytes = kGemmF32SharedBytes;
  record.ints = {m, n, k};
  if (!update)
    return launch(std::move(record), {{gemm.a, gemm.b, gemm.bias}, {gemm.y, gemm.sums}}, builder);
  record.floats = {update->weightDecay};
  return launch(std::move(record),
                {{gemm.a, gemm.b, update->lr, update->weight, update->bias, update->step},
                 {gemm.y, gemm.sums, update->nextStep}},
                builder);
}

bool lowerProduct(const Place &a, const Place &b, const Place &result, BucketBuilder &builder) {
  const auto fits = [](const Place &matrix) {
    return matrix.sizes.size() == 2 && (hasDenseRows(matrix) || hasDenseRows(transposed(matrix)));
  };
  const bool isFloat = a.dtype == DType::F32,
             isHalf = isFloating(a.dtype) && dtypeSize(a.dtype) == 2;
  if (builder.target() != DeviceKind::Cuda || !(isFloat || isHalf) || a.dtype != b.dtype ||
      (result.dtype != a.dtype && result.dtype != DType::F32) || !fits(a) || !fits(b) ||
      !hasDenseRows(result))
    return false;
  if (lowerSmallGemm({.a = a, .b = transposed(b), .y = result}, builder))
    return true;
  const TensorId workspace =
      builder.tensor(builder.temporary(DType::U8, {libraryWorkspaceBytes(builder.arch())}));
  builder.record({libraryCall({.x = builder.tensor(a),
                               .weight = builder.tensor(transposed(b)),
                               .d = builder.tensor(result),
                               .workspace = workspace,
                               .tf32 = builder.tf32() && isFloat})});
  return true;
}

bool lowersToNormGemm(const GemmPlaces &operands, Activation activation, double eps,
                      const BucketBuilder &builder) {
  return normGemmOf(operands, activation, eps, builder).has_value();
}

bool lowerNormGemm(const GemmPlaces &operands, Activation activation, double eps,
                   BucketBuilder &builder) {
  const std::optional<NormGemm> gemm = normGemmOf(operands, activation, eps, builder);
  return gemm && launch(gemm->launch, gemm->tensors, builder);
}

} // namespace cgc::backend

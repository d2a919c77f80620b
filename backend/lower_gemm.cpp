// Lowers GEMMs: on cuda to our own kernels or cuBLASLt, otherwise to LibTorch.
#include "backend/lower_gemm.h"

#include "backend/gemm_model.h"
#include "backend/gemm_record.h"
#include "backend/kernels.h"
#include "runtime/plan/gemm_call.h"

namespace cgc::backend {
namespace {

/// With an M up to this a GEMM is bound by loading its weights, so rounding its operands to TF32
/// would save no time. On an H200 that holds up to M = 28, for f32 weights at 4.8 TB/s and 67
/// TFLOP/s without tensor cores.
constexpr int64_t kRowsBehindWeights = 16;

/// `place` as a matrix with all but the last dimension merged; nothing if its strides forbid it.
std::optional<Place> asMatrix(Place place) {
  if (place.sizes.size() == 1) {
    place.strides.insert(place.strides.begin(), place.sizes[0] * place.strides[0]);
    place.sizes.insert(place.sizes.begin(), 1);
  }
  return place.sizes.size() < 2 ? std::nullopt : mergeLeading(place, 2);
}

/// The operands with x, unless it is `images`, y and the residual as matrices. Nothing if one of
/// them is none.
std::optional<GemmPlaces> matricesOf(GemmPlaces operands, bool images) {
  const auto x = images ? std::optional(operands.x) : asMatrix(operands.x),
             y = asMatrix(operands.y),
             residual = operands.residual ? asMatrix(*operands.residual) : std::nullopt;
  if (!x || !y || operands.w.sizes.size() != (images ? 4 : 2) ||
      operands.residual.has_value() != residual.has_value())
    return std::nullopt;
  operands.x = *x;
  operands.y = *y;
  operands.residual = residual;
  return operands;
}

/// The tensor of a place whose memory is not known yet, at the offset that the memory leaves.
TensorRef tensorAt(const Place &place) {
  return {.slot = {.offset = place.offset},
          .dtype = place.dtype,
          .sizes = {place.sizes.begin(), place.sizes.end()},
          .strides = {place.strides.begin(), place.strides.end()}};
}

/// What computes a GEMM, the part of it that this fuses, and the operands of that part.
struct ChosenGemm {
  GemmProblem part;
  GemmChoice choice;
  GemmPlaces matrices;
};

/// Whether `choice` takes the operands of `problem`.
bool takes(const GemmProblem &problem, const GemmChoice &choice, const GemmPlaces &matrices,
           const BucketBuilder &builder) {
  if (!std::holds_alternative<GemmLibraryChoice>(choice))
    return backend::takes(gemmLaunch(problem, choice), gemmTensors(problem, matrices), builder);
  const std::optional<Place> &bias = matrices.bias;
  return !bias || (bias->dtype == problem.dtype && bias->type().isContiguous() &&
                   bias->offset % kBiasAlignment == 0);
}

/// Whether a separate layer_norm and a GEMM are faster than `choice`, the best candidate. Before
/// Hopper they are, by cuBLASLt. For few rows a layer_norm costs mostly its launch; for more, only
/// persistent tiles are faster.
bool isFasterApart(GemmProblem problem, const GemmChoice &choice) {
  if (!problem.epilogue.normEps)
    return false;
  const GemmTile &tile = *std::get<GemmKernelChoice>(choice).kernel.tile;
  problem.epilogue.normEps.reset();
  return tile.mma ||
         (problem.m > kNonPersistentMaxM && (!tile.persistent || prefersLibrary(problem)));
}

/// The one place that decides what computes a GEMM: as lowerGemm().
std::optional<ChosenGemm> choose(const GemmPlaces &operands, const GemmProblem::Epilogue &epilogue,
                                 GemmUse use, const BucketBuilder &builder) {
  if (builder.target() != DeviceKind::Cuda)
    return std::nullopt;
  auto matrices = matricesOf(operands, epilogue.windows.has_value());
  auto problem = matrices ? gemmProblem(mapOperands(*matrices, tensorAt), epilogue) : std::nullopt;
  if (!problem && operands.residual &&
      !epilogue.windows) { // It may be no matrix: y has no statistics before it.
    GemmPlaces others = operands;
    others.residual.reset();
    others.yStatistics.reset();
    return choose(others, epilogue, use, builder);
  }
  if (!problem)
    return std::nullopt;
  problem->tf32 = builder.tf32() && problem->dtype == DType::F32 && problem->m > kRowsBehindWeights;
  const std::vector<GemmChoice> candidates = gemmCandidates(*problem, builder.gpu());
  if (candidates.empty() || isFasterApart(*problem, candidates.front()))
    return std::nullopt;
  for (const GemmChoice &choice : candidates) {
    if (use == GemmUse::Product && std::holds_alternative<GemmKernelChoice>(choice))
      continue;
    ChosenGemm chosen{fusedPart(*problem, choice), choice, *matrices};
    if (!chosen.part.epilogue.residual)
      chosen.matrices.residual.reset();
    if (!chosen.part.epilogue.rowStatistics)
      chosen.matrices.yStatistics.reset();
    if (takes(chosen.part, choice, chosen.matrices, builder))
      return chosen;
  }
  return std::nullopt;
}

} // namespace

std::optional<UnfusedEpilogue> lowerGemm(const GemmPlaces &operands,
                                         const GemmProblem::Epilogue &epilogue,
                                         BucketBuilder &builder, GemmUse use) {
  const std::optional<ChosenGemm> gemm = choose(operands, epilogue, use, builder);
  if (!gemm)
    return std::nullopt;
  const auto ids =
      mapOperands(gemm->matrices, [&](const Place &place) { return builder.tensor(place); });
  const TensorId workspace =
      std::holds_alternative<GemmLibraryChoice>(gemm->choice)
          ? builder.tensor(builder.temporary(DType::U8, {libraryWorkspaceBytes(builder.arch())}))
          : kNoTensor;
  builder.record({encodeGemm({gemm->part, ids, gemm->choice, workspace})});
  return UnfusedEpilogue{epilogue.activation != gemm->part.epilogue.activation,
                         operands.residual.has_value() != gemm->matrices.residual.has_value(),
                         operands.yStatistics.has_value() !=
                             gemm->matrices.yStatistics.has_value()};
}

bool lowersToGemm(const GemmPlaces &operands, const GemmProblem::Epilogue &epilogue,
                  const BucketBuilder &builder) {
  return choose(operands, epilogue, GemmUse::Layer, builder).has_value();
}

void callLinear(const GemmPlaces &p, BucketBuilder &builder) {
  const auto x = asMatrix(p.x), y = asMatrix(p.y);
  const auto bias = [&] { return p.bias ? AtenArg(builder.tensor(*p.bias)) : AtenArg(NoneArg{}); };
  if (!x || !y || p.w.sizes.size() != 2 || p.x.sizes.size() < 2) {
    builder.callThenCopy("aten::linear", "", {builder.tensor(p.x), builder.tensor(p.w), bias()},
                         {p.y});
    return;
  }
  const AtenArg a = builder.tensor(*x), b = builder.tensor(transposed(p.w));
  if (p.bias)
    builder.callInto("aten::addmm", "out", {bias(), a, b, int64_t{1}, int64_t{1}}, *y);
  else
    builder.callInto("aten::mm", "out", {a, b}, *y);
}

void callConvolution(const GemmPlaces &p, const ConvWindows &windows, int64_t groups,
                     BucketBuilder &builder) {
  const auto channelsSecond = [](Place place) {
    for (auto *dims : {&place.sizes, &place.strides})
      *dims = {(*dims)[0], (*dims)[3], (*dims)[1], (*dims)[2]};
    return place;
  };
  const auto pair = [](const std::array<int64_t, 2> &of) {
    return AtenArg(std::vector<int64_t>(of.begin(), of.end()));
  };
  builder.callThenCopy("aten::conv2d", "",
                       {builder.tensor(channelsSecond(p.x)), builder.tensor(channelsSecond(p.w)),
                        p.bias ? AtenArg(builder.tensor(*p.bias)) : AtenArg(NoneArg{}),
                        pair(windows.stride), pair(windows.padding), pair(windows.dilation),
                        groups},
                       {channelsSecond(p.y)});
}

} // namespace cgc::backend

// Lowers GEMMs: on cuda to our own kernels or cuBLASLt, otherwise to LibTorch.
#include "backend/lower_gemm.h"

#include "backend/gemm_tile.h"
#include "backend/kernels.h"
#include "runtime/base/check.h"
#include "runtime/kernels/rowwise/embedding.h"
#include "runtime/kernels/rowwise/layer_norm.h"
#include "runtime/plan/gemm_call.h"

#include <climits>

namespace cgc::backend {
namespace {

/// From this many multiplications on, cuBLASLt computes a GEMM that it can fuse. Below, a tower
/// with a norm before each second GEMM, as OpenCLIP's, is faster with our kernels, which need no
/// layer_norm: measured up to 64 images of ViT-L-14, 6.9e10, on an H200
/// (docs/log/2026-11-22-tile-model.md). A large GEMM that is not next to a norm may be slower than
/// cuBLASLt's; `cgc tune` decides that by measurement.
constexpr double kMultiplicationsForLibrary = 1e11;

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

/// Whether a matrix is not empty and its rows are dense and do not overlap.
bool hasDenseRows(const Place &matrix) {
  auto fits = [](int64_t size) { return size > 0 && size <= INT_MAX; };
  return fits(matrix.sizes[0]) && fits(matrix.sizes[1]) &&
         (matrix.strides[1] == 1 || matrix.sizes[1] == 1) &&
         (matrix.strides[0] >= matrix.sizes[1] || matrix.sizes[0] == 1);
}

/// The operands and the result of a GEMM as matrices.
struct Matrices {
  Place x, weight, result;
};

std::optional<Matrices> matricesOf(const Gemm &p) {
  std::optional<Place> x = asMatrix(p.x), result = asMatrix(p.result);
  if (!x || !result || p.weight.sizes.size() != 2)
    return std::nullopt;
  return Matrices{std::move(*x), p.weight, std::move(*result)};
}

/// The tile that the model ranks first.
TileChoice bestTile(const TiledKernels &family, const Matrices &m, const BucketBuilder &builder) {
  return tileChoices(family.tiles, m.x.sizes[0], m.weight.sizes[0], m.weight.sizes[1],
                     builder.multiprocessors())
      .front();
}

/// Whether to look for a tile: there are kernels of this dtype, and the model can rank tiles for
/// these sizes. takes() checks everything else that kernels require of tensors and GPU.
bool mayHaveTile(const Matrices &m) {
  return (m.x.dtype == DType::F16 || m.x.dtype == DType::BF16) && hasDenseRows(m.x) &&
         hasDenseRows(m.weight);
}

/// A launch of the family's kernel for this tile, without its tensors.
KernelLaunch launchOfTile(const TiledKernels &family, const TileChoice &tile, const Gemm &p,
                          const Matrices &m) {
  KernelLaunch launch;
  launch.ints = {m.x.sizes[0], m.weight.sizes[0], m.weight.sizes[1], int64_t(p.activation)};
  setTile(launch, family, m.x.dtype, tile);
  return launch;
}

/// The tensors of a launch; nothing if the residual is no matrix.
std::optional<RecordTensors> tensorsOf(const Gemm &p, const Matrices &m) {
  const std::optional<Place> residual = p.residual ? asMatrix(*p.residual) : std::optional<Place>();
  if (p.residual && !residual)
    return std::nullopt;
  return RecordTensors{{m.x, m.weight, p.bias, residual}, {m.result}};
}

bool lowerToKernel(const Gemm &p, const Matrices &m, BucketBuilder &builder) {
  const std::optional<RecordTensors> tensors = tensorsOf(p, m);
  if (!tensors || !mayHaveTile(m))
    return false;
  const TiledKernels family = gemmKernels();
  return launch(launchOfTile(family, bestTile(family, m, builder), p, m), *tensors, builder);
}

bool isForCublasLt(const Gemm &p, const Matrices &m) {
  DType dtype = m.x.dtype;
  if (dtype != DType::F16 && dtype != DType::BF16 && dtype != DType::F32)
    return false;
  for (const Place *matrix : {&m.x, &m.weight, &m.result})
    if (matrix->dtype != dtype || !hasDenseRows(*matrix))
      return false;
  return !p.bias || (p.bias->dtype == dtype && p.bias->type().isContiguous() &&
                     p.bias->offset % kBiasAlignment == 0);
}

/// Whether cuBLASLt can fuse bias, activation and residual, and the GEMM is large enough.
bool prefersCublasLt(const Gemm &p, const Matrices &m) {
  const double multiplications =
      double(m.x.sizes[0]) * double(m.weight.sizes[0]) * double(m.weight.sizes[1]);
  const bool fuses =
      p.activation == Activation::None || (p.activation == Activation::Relu && !p.residual);
  return isForCublasLt(p, m) && fuses && multiplications >= kMultiplicationsForLibrary;
}

Remainder lowerToCublasLt(const Gemm &p, const Matrices &m, BucketBuilder &builder) {
  // cuBLASLt's GELU is the approximation by tanh, and its activation follows the residual.
  bool relu = p.activation == Activation::Relu;
  bool leavesActivation = !relu && p.activation != Activation::None;
  std::optional<Place> residual;
  if (p.residual && p.activation == Activation::None)
    residual = asMatrix(*p.residual);
  if (residual && (residual->dtype != m.x.dtype || !hasDenseRows(*residual)))
    residual.reset();

  GemmCall call;
  call.x = builder.tensor(m.x);
  call.weight = builder.tensor(m.weight);
  if (p.bias)
    call.bias = builder.tensor(*p.bias);
  if (residual)
    call.residual = builder.tensor(*residual);
  call.d = builder.tensor(m.result);
  call.workspace =
      builder.tensor(builder.temporary(DType::U8, {libraryWorkspaceBytes(builder.arch())}));
  call.relu = relu;
  call.tf32 = builder.tf32() && m.x.dtype == DType::F32 && m.x.sizes[0] > kRowsBehindWeights;
  builder.record({libraryCall(call)});
  return {leavesActivation, p.residual && !residual};
}

Remainder lowerToAten(const Gemm &p, const std::optional<Matrices> &m, BucketBuilder &builder) {
  Remainder remainder{p.activation != Activation::None, p.residual.has_value()};
  auto bias = [&]() -> AtenArg {
    return p.bias ? AtenArg(builder.tensor(*p.bias)) : AtenArg(NoneArg{});
  };
  if (!m || p.x.sizes.size() < 2) {
    builder.callThenCopy("aten::linear", "",
                         {builder.tensor(p.x), builder.tensor(p.weight), bias()}, {p.result});
    return remainder;
  }
  AtenArg a = builder.tensor(m->x), b = builder.tensor(transposed(m->weight));
  if (p.bias)
    builder.callInto("aten::addmm", "out", {bias(), a, b, int64_t{1}, int64_t{1}}, m->result);
  else
    builder.callInto("aten::mm", "out", {a, b}, m->result);
  return remainder;
}

/// Whether `launch`, which writes the matrix `y`, can also write the row statistics of `y`.
bool writesRowStatistics(const KernelLaunch &launch, const Place &y, const BucketBuilder &builder) {
  const auto isOf = [&](llvm::StringRef name) {
    return launch.kernel == kernelNamed(name, y.dtype);
  };
  bool aligned = true;
  for (const auto &tensors : {launch.reads, launch.writes})
    for (TensorId id : tensors)
      aligned &= id == kNoTensor || builder.placeOf(id).offset % 16 == 0;
  const int64_t columns = y.sizes[1];
  // The rows of a layer_norm over several dimensions are longer than those of y.
  if (isOf("layer_norm") || isOf("layer_norm_by_f32"))
    return launch.ints[1] == columns && layerNormWritesRowStatistics(columns, aligned);
  if (isOf("embedding"))
    return embeddingWritesRowStatistics(columns, aligned);
  return tiledKernelsOf(launch).has_value();
}

/// The sizes of the row statistics of `x`.
ir::Dims rowStatisticsSizes(const Place &x) {
  return {x.sizes[0], statisticsGroups(x.sizes[1]), 2};
}

/// The row statistics of `x`, a 16-bit matrix. Makes the kernel that computed it write them.
/// Nothing if it cannot, or if no kernel computed it.
std::optional<Place> rowStatisticsOf(const Place &x, BucketBuilder &builder) {
  LaunchRecord *writer = builder.writerOf(x);
  auto *launch = writer ? std::get_if<KernelLaunch>(&writer->op) : nullptr;
  if (!launch || !writesRowStatistics(*launch, x, builder))
    return std::nullopt;
  CGC_CHECK(launch->writes.size() == 2 &&
            "16-bit kernels that write row statistics write two tensors");
  TensorId &statistics = launch->writes[1];
  if (statistics == kNoTensor)
    statistics = builder.tensor(builder.temporary(DType::F32, rowStatisticsSizes(x)));
  return builder.placeOf(statistics);
}

} // namespace

int64_t libraryWorkspaceBytes(Arch arch) {
  return arch == Arch::Sm90a ? 32 << 20 : 4 << 20;
}

Result<Remainder> lowerGemm(const Gemm &gemm, BucketBuilder &builder) {
  std::optional<Matrices> matrices = matricesOf(gemm);
  if (builder.target() != DeviceKind::Cuda || !matrices)
    return lowerToAten(gemm, matrices, builder);
  if (!prefersCublasLt(gemm, *matrices) && lowerToKernel(gemm, *matrices, builder))
    return Remainder{};
  return isForCublasLt(gemm, *matrices) ? lowerToCublasLt(gemm, *matrices, builder)
                                        : lowerToAten(gemm, matrices, builder);
}

bool lowerNormGemm(const Gemm &gemm, double eps, BucketBuilder &builder) {
  CGC_CHECK(!gemm.residual && "cgc.norm_linear has none");
  const std::optional<Matrices> matrices = matricesOf(gemm);
  if (!matrices || !mayHaveTile(*matrices))
    return false;
  const TiledKernels family = gemmNormKernels();
  const TileChoice choice = bestTile(family, *matrices, builder);
  if (matrices->x.sizes[0] > kNormNonPersistentMaxM &&
      (!choice.tile->persistent || prefersCublasLt(gemm, *matrices)))
    return false;
  KernelLaunch record = launchOfTile(family, choice, gemm, *matrices);
  record.floats = {eps};
  // A placeholder of the right sizes stands for the row statistics until everything else is
  // checked; only then is the kernel that wrote x made to write them.
  const ir::Dims sizes = rowStatisticsSizes(matrices->x);
  RecordTensors tensors{
      {matrices->x, matrices->weight, gemm.bias,
       Place{.dtype = DType::F32, .sizes = sizes, .strides = ir::contiguousStrides(sizes)}},
      {matrices->result}};
  if (!takes(record, tensors, builder))
    return false;
  tensors.reads.back() = rowStatisticsOf(matrices->x, builder);
  return launch(std::move(record), tensors, builder);
}

} // namespace cgc::backend

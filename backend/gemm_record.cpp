// Encodes and decodes the two kinds of records that compute a GEMM: launches of gemm_* and
// gemm_norm_*, and calls of cublaslt.matmul.
#include "backend/gemm_record.h"

#include "runtime/plan/gemm_call.h"

#include <algorithm>

namespace cgc::backend {
namespace {

/// The tensors of a launch in the order of kernels.def.
template <class T> RecordOperands<T> operandsOf(const GemmOperands<T> &operands, bool normalizes) {
  RecordOperands<T> record;
  record.reads.resize(kGemmReads);
  record.reads[kGemmX] = operands.x;
  record.reads[kGemmW] = operands.w;
  record.reads[kGemmBias] = operands.bias;
  if (normalizes)
    record.reads[kGemmXStatistics] = operands.xStatistics;
  else
    record.reads[kGemmResidual] = operands.residual;
  record.writes.resize(kGemmWrites);
  record.writes[kGemmY] = operands.y;
  record.writes[kGemmYStatistics] = operands.yStatistics;
  return record;
}

std::vector<TensorId> idsOf(const std::vector<std::optional<TensorId>> &operands) {
  std::vector<TensorId> ids;
  for (const std::optional<TensorId> &operand : operands)
    ids.push_back(operand.value_or(kNoTensor));
  return ids;
}

std::optional<TensorId> present(TensorId id) {
  return id == kNoTensor ? std::nullopt : std::optional(id);
}

GemmProblem::Rows rowsOf(const TensorRef &matrix) {
  return {rowStride(matrix), alignmentOf(kBufferAlignment | matrix.slot.offset)};
}

/// The problem of these operands. `epilogue` has the activation and the eps. Nothing if x, w, y or
/// the residual is no matrix.
std::optional<GemmProblem> problemOf(const GemmOperands<TensorId> &operands,
                                     GemmProblem::Epilogue epilogue, const Bucket &bucket) {
  const auto matrix = [&](TensorId id) -> const TensorRef * {
    const TensorRef &tensor = bucket.tensors[uint32_t(id)];
    return tensor.sizes.size() == 2 ? &tensor : nullptr;
  };
  const TensorRef *x = matrix(operands.x), *w = matrix(operands.w), *y = matrix(operands.y);
  const TensorRef *residual = operands.residual ? matrix(*operands.residual) : nullptr;
  if (!x || !w || !y || (operands.residual && !residual))
    return std::nullopt;
  epilogue.bias = operands.bias.has_value();
  epilogue.residual = operands.residual.has_value();
  epilogue.rowStatistics = operands.yStatistics.has_value();
  return GemmProblem{.dtype = x->dtype,
                     .m = x->sizes[0],
                     .n = w->sizes[0],
                     .k = x->sizes[1],
                     .x = rowsOf(*x),
                     .w = rowsOf(*w),
                     .y = rowsOf(*y),
                     .residual = residual ? rowsOf(*residual) : GemmProblem::Rows(),
                     .epilogue = epilogue};
}

std::optional<GemmRecord> decode(const KernelLaunch &launch, const Bucket &bucket) {
  const Kernel *row = findKernel(launch.kernel);
  const std::optional<GemmKernel> kernel = row ? gemmKernelOf(*row) : std::nullopt;
  if (!kernel || !row->takesCountsOf(launch))
    return std::nullopt;
  for (const TensorId id : {launch.reads[kGemmX], launch.reads[kGemmW], launch.writes[kGemmY]})
    if (id == kNoTensor)
      return std::nullopt;
  const bool normalizes = kernel->tile->normalizes;
  const std::optional<TensorId> last = present(launch.reads[kGemmResidual]);
  GemmRecord gemm{.problem = {},
                  .operands = {.x = launch.reads[kGemmX],
                               .w = launch.reads[kGemmW],
                               .bias = present(launch.reads[kGemmBias]),
                               .residual = normalizes ? std::nullopt : last,
                               .xStatistics = normalizes ? last : std::nullopt,
                               .y = launch.writes[kGemmY],
                               .yStatistics = present(launch.writes[kGemmYStatistics])},
                  // A grid is also that for a GPU with as many SMs as the grid has CTAs.
                  .choice = GemmKernelChoice{*kernel, kernel->tile->stagesIn(launch.sharedBytes),
                                             launch.grid[0]}};
  const auto problem =
      problemOf(gemm.operands,
                {.activation = Activation(GemmNumbers::of(launch.ints).activation),
                 .normEps = normalizes ? std::optional(launch.floats[0]) : std::nullopt},
                bucket);
  if (!problem)
    return std::nullopt;
  gemm.problem = *problem;
  return gemm;
}

std::optional<GemmRecord> decode(const LibraryCall &call, const Bucket &bucket) {
  if (!isGemm(call))
    return std::nullopt;
  const Result<GemmCall> decoded = gemmCall(call, bucket.tensors);
  if (!decoded.isOk())
    return std::nullopt;
  // No kernel computes the others, so that there is nothing to choose.
  const auto tensor = [&](TensorId id) -> const TensorRef & {
    return bucket.tensors[uint32_t(id)];
  };
  if (isTransposed(tensor(decoded->x)) || isTransposed(tensor(decoded->weight)) ||
      tensor(decoded->d).dtype != tensor(decoded->x).dtype)
    return std::nullopt;
  GemmRecord gemm{.problem = {},
                  .operands = {.x = decoded->x,
                               .w = decoded->weight,
                               .bias = present(decoded->bias),
                               .residual = present(decoded->residual),
                               .y = decoded->d},
                  .choice = GemmLibraryChoice{call.algorithm},
                  .workspace = decoded->workspace};
  gemm.problem = *problemOf(
      gemm.operands, {.activation = decoded->relu ? Activation::Relu : Activation::None}, bucket);
  gemm.problem.tf32 = decoded->tf32;
  return gemm;
}

template <class T> std::optional<GemmRecord> decode(const T &, const Bucket &) {
  return std::nullopt;
}

} // namespace

KernelLaunch gemmLaunch(const GemmProblem &problem, const GemmKernelChoice &choice) {
  const GemmTile &tile = *choice.kernel.tile;
  KernelLaunch launch = launchOf(choice.kernel.row());
  std::ranges::copy(tile.grid(problem.m, problem.n, choice.multiprocessors), launch.grid);
  launch.block[0] = tile.threads();
  launch.sharedBytes = tile.sharedBytes(choice.stages);
  const auto ints =
      GemmNumbers{problem.m, problem.n, problem.k, int64_t(problem.epilogue.activation)}.ints();
  launch.ints.assign(ints.begin(), ints.end());
  if (problem.epilogue.normEps)
    launch.floats = {*problem.epilogue.normEps};
  return launch;
}

RecordTensors gemmTensors(const GemmProblem &problem, const GemmOperands<Place> &operands) {
  return operandsOf(operands, problem.epilogue.normEps.has_value());
}

decltype(LaunchRecord::op) encodeGemm(const GemmRecord &gemm) {
  const GemmOperands<TensorId> &operands = gemm.operands;
  const GemmProblem &problem = gemm.problem;
  if (const auto *choice = std::get_if<GemmKernelChoice>(&gemm.choice)) {
    KernelLaunch launch = gemmLaunch(problem, *choice);
    const auto tensors = operandsOf(operands, problem.epilogue.normEps.has_value());
    launch.reads = idsOf(tensors.reads);
    launch.writes = idsOf(tensors.writes);
    return launch;
  }
  LibraryCall call = libraryCall({.x = operands.x,
                                  .weight = operands.w,
                                  .bias = operands.bias.value_or(kNoTensor),
                                  .residual = operands.residual.value_or(kNoTensor),
                                  .d = operands.y,
                                  .workspace = gemm.workspace,
                                  .relu = problem.epilogue.activation == Activation::Relu,
                                  .tf32 = problem.tf32});
  call.algorithm = std::get<GemmLibraryChoice>(gemm.choice).algorithm;
  return call;
}

std::optional<GemmRecord> decodeGemm(const LaunchRecord &record, const Bucket &bucket) {
  return std::visit([&](const auto &op) { return decode(op, bucket); }, record.op);
}

} // namespace cgc::backend

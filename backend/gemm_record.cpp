// Encodes and decodes the records that compute a GEMM: launches of gemm_*, gemm_norm_*, conv_*,
// gemm_f32_* and gemm_sgd_f32_*, and calls of cublaslt.matmul.
#include "backend/gemm_record.h"

#include "runtime/kernels/gemm/gemm_f32.h"
#include "runtime/plan/gemm_call.h"

#include <algorithm>

namespace cgc::backend {
namespace {

/// The optional operands of a launch in the order of kernels.def, behind x and w or behind y.
template <class T> struct OptionalOperands {
  std::vector<std::optional<T> GemmOperands<T>::*> reads, writes;
};
/// Those of gemm_sgd_f32_*, gemm_f32_*, gemm_norm_*, or gemm_* and conv_*.
template <class T>
OptionalOperands<T> optionalOperandsOf(const GemmProblem::Epilogue &epilogue, bool isF32) {
  using O = GemmOperands<T>;
  if (epilogue.sgdWeightDecay)
    return {{&O::lr, &O::oldWeight, &O::oldBias, &O::step}, {&O::xSums, &O::nextStep}};
  if (isF32)
    return {{&O::bias}, {&O::xSums}};
  return {{&O::bias, epilogue.normEps ? &O::xStatistics : &O::residual}, {&O::yStatistics}};
}

template <class T>
RecordOperands<T> operandsOf(const GemmProblem &problem, const GemmOperands<T> &operands) {
  const auto order = optionalOperandsOf<T>(problem.epilogue, problem.dtype == DType::F32);
  RecordOperands<T> record{{operands.x, operands.w}, {operands.y}};
  for (const auto operand : order.reads)
    record.reads.push_back(operands.*operand);
  for (const auto operand : order.writes)
    record.writes.push_back(operands.*operand);
  return record;
}

std::vector<TensorId> idsOf(const std::vector<std::optional<TensorId>> &operands) {
  std::vector<TensorId> ids;
  for (const std::optional<TensorId> &operand : operands)
    ids.push_back(operand.value_or(kNoTensor));
  return ids;
}

/// A kernel of gemm_f32_*, or of gemm_sgd_f32_* if it `updates` a weight.
std::string f32KernelNamed(int64_t splitK, bool updates) {
  return (updates ? "gemm_sgd_f32_" : "gemm_f32_") + std::to_string(splitK);
}

std::optional<TensorId> present(TensorId id) {
  return id == kNoTensor ? std::nullopt : std::optional(id);
}

/// The record of these operands; `epilogue` as for gemmProblem().
std::optional<GemmRecord> recordOf(const GemmOperands<TensorId> &operands,
                                   const GemmProblem::Epilogue &epilogue, GemmChoice choice,
                                   const Bucket &bucket) {
  const auto problem = gemmProblem(
      mapOperands(operands, [&](TensorId id) { return bucket.tensors[uint32_t(id)]; }), epilogue);
  return problem ? std::optional(GemmRecord{*problem, operands, std::move(choice)}) : std::nullopt;
}

std::optional<GemmRecord> decode(const KernelLaunch &launch, const Bucket &bucket) {
  const Kernel *row = findKernel(launch.kernel);
  if (!row || !row->takesCountsOf(launch) || launch.reads.size() != row->reads)
    return std::nullopt;
  std::optional<GemmChoice> choice;
  GemmProblem::Epilogue epilogue;
  for (const int64_t splitK : kGemmF32Splits)
    for (const bool updates : {false, true})
      if (launch.kernel == f32KernelNamed(splitK, updates)) {
        choice = GemmF32Choice{splitK};
        if (updates)
          epilogue.sgdWeightDecay = launch.floats[0];
      }
  if (const std::optional<GemmKernel> kernel = gemmKernelOf(*row)) {
    // A grid is also that for a GPU with as many SMs as the grid has CTAs.
    choice = GemmKernelChoice{*kernel, kernel->tile->stagesIn(launch.sharedBytes), launch.grid[0]};
    const GemmNumbers numbers = GemmNumbers::of(launch.ints);
    epilogue.activation = Activation(numbers.activation);
    epilogue.gates = numbers.gates == 1;
    if (kernel->tile->form == GemmForm::Norm)
      epilogue.normEps = launch.floats[0];
    if (kernel->tile->form == GemmForm::Conv)
      epilogue.windows = ConvWindows::of(launch.ints);
  }
  if (!choice || launch.reads[kGemmX] == kNoTensor || launch.reads[kGemmW] == kNoTensor ||
      launch.writes[kGemmY] == kNoTensor)
    return std::nullopt;
  GemmOperands<TensorId> operands{
      .x = launch.reads[kGemmX], .w = launch.reads[kGemmW], .y = launch.writes[kGemmY]};
  const auto order =
      optionalOperandsOf<TensorId>(epilogue, std::holds_alternative<GemmF32Choice>(*choice));
  for (size_t i = 0; i < order.reads.size(); ++i)
    operands.*order.reads[i] = present(launch.reads[kGemmW + 1 + i]);
  for (size_t i = 0; i < order.writes.size(); ++i)
    operands.*order.writes[i] = present(launch.writes[kGemmY + 1 + i]);
  return recordOf(operands, epilogue, *choice, bucket);
}

std::optional<GemmRecord> decode(const LibraryCall &call, const Bucket &bucket) {
  if (!isGemm(call))
    return std::nullopt;
  const Result<GemmCall> decoded = gemmCall(call, bucket.tensors);
  if (!decoded.isOk())
    return std::nullopt;
  auto gemm = recordOf({.x = decoded->x,
                        .w = decoded->weight,
                        .bias = present(decoded->bias),
                        .residual = present(decoded->residual),
                        .y = decoded->d},
                       {.activation = decoded->relu ? Activation::Relu : Activation::None},
                       GemmLibraryChoice{call.algorithm}, bucket);
  if (gemm) {
    gemm->problem.tf32 = decoded->tf32;
    gemm->workspace = decoded->workspace;
  }
  return gemm;
}

template <class T> std::optional<GemmRecord> decode(const T &, const Bucket &) {
  return std::nullopt;
}

} // namespace

KernelLaunch gemmLaunch(const GemmProblem &problem, const GemmChoice &choice) {
  if (const auto *kernel = std::get_if<GemmF32Choice>(&choice)) {
    const std::optional<double> decay = problem.epilogue.sgdWeightDecay;
    KernelLaunch launch = launchOf(*findKernel(f32KernelNamed(kernel->splitK, decay.has_value())));
    launch.grid[0] = uint32_t(gemmF32Tiles(problem.n) * kernel->splitK);
    launch.grid[1] = uint32_t(gemmF32Tiles(problem.m));
    launch.block[0] = kGemmF32Threads;
    launch.sharedBytes = kGemmF32SharedBytes;
    launch.ints = {problem.m, problem.n, problem.k};
    if (decay)
      launch.floats = {*decay};
    return launch;
  }
  const auto &kernel = std::get<GemmKernelChoice>(choice);
  const GemmTile &tile = *kernel.kernel.tile;
  KernelLaunch launch = launchOf(kernel.kernel.row());
  std::ranges::copy(tile.grid(problem.m, problem.n, kernel.multiprocessors), launch.grid);
  launch.block[0] = tile.threads();
  launch.sharedBytes = tile.sharedBytes(kernel.stages);
  const auto ints = GemmNumbers{problem.m, problem.n, problem.k,
                                int64_t(problem.epilogue.activation), problem.epilogue.gates}
                        .ints();
  launch.ints.assign(ints.begin(), ints.end());
  if (const auto &windows = problem.epilogue.windows)
    std::ranges::copy(windows->ints(), std::back_inserter(launch.ints));
  if (problem.epilogue.normEps)
    launch.floats = {*problem.epilogue.normEps};
  return launch;
}

RecordTensors gemmTensors(const GemmProblem &problem, const GemmOperands<Place> &operands) {
  return operandsOf(problem, operands);
}

decltype(LaunchRecord::op) encodeGemm(const GemmRecord &gemm) {
  const GemmOperands<TensorId> &operands = gemm.operands;
  const GemmProblem &problem = gemm.problem;
  const auto *library = std::get_if<GemmLibraryChoice>(&gemm.choice);
  if (!library) {
    KernelLaunch launch = gemmLaunch(problem, gemm.choice);
    const auto tensors = operandsOf(problem, operands);
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
  call.algorithm = library->algorithm;
  return call;
}

std::optional<GemmRecord> decodeGemm(const LaunchRecord &record, const Bucket &bucket) {
  return std::visit([&](const auto &op) { return decode(op, bucket); }, record.op);
}

} // namespace cgc::backend

// Launches of cgc's own kernels: makes their records and checks that a kernel takes its tensors.
#include "backend/kernels.h"

#include "runtime/base/check.h"
#include "runtime/kernels/rowwise/warp_rows.h"

namespace cgc::backend {
namespace {

/// The operand in `place`. Its alignment is the one that the offset leaves of a buffer's: every
/// buffer begins at a multiple of kBufferAlignment.
OperandView operandView(const Place &place) {
  OperandView view{place.dtype, place.sizes, {}, alignmentOf(kBufferAlignment | place.offset)};
  if (!place.type().isContiguous())
    view.strides = place.strides;
  return view;
}

/// Grid size of elementwise, compare, where and copy for this result. Each thread processes 16
/// bytes of the result, or of operands of dtype `operands`, if the innermost stride is 1; else one
/// element.
uint64_t elementwiseBlocksFor(const Place &result, std::optional<DType> operands = {}) {
  uint64_t width = 16 / dtypeSize(operands.value_or(result.dtype));
  bool together = !result.strides.empty() && result.strides.back() == 1;
  return elementwiseBlocks(result.type().numElements(), together ? width : 1);
}

/// The record of `launch` without its tensors. The kernel must exist.
KernelLaunch recordOf(const Launch &launch) {
  KernelLaunch record = launchOf(*findKernel(launch.kernel));
  record.grid[0] = static_cast<uint32_t>(launch.blocks);
  record.grid[1] = launch.blocksY;
  record.grid[2] = launch.blocksZ;
  record.block[0] = launch.threads;
  record.sharedBytes = launch.sharedBytes;
  record.ints = launch.ints;
  record.floats = launch.floats;
  return record;
}

RecordTensors tensorsOf(const Launch &launch) {
  RecordTensors tensors{launch.reads, {launch.writes.begin(), launch.writes.end()}};
  if (launch.rowStatistics)
    tensors.writes.push_back(launch.rowStatistics);
  return tensors;
}

/// result = x op z as elementwise or compare. Without `z`, `number` is the second operand.
Launch operation(llvm::StringRef kernel, int64_t op, const Place &x, const std::optional<Place> &z,
                 double number, const Place &result) {
  return {.kernel = kernelNamed(kernel, x.dtype),
          .blocks = elementwiseBlocksFor(result, x.dtype),
          .threads = kElementwiseThreads,
          .reads = {x, z},
          .writes = {result},
          .ints = {op},
          .floats = {number}};
}

Launch copyOf(const Place &source, const Place &destination) {
  return {.kernel = "copy",
          .blocks = elementwiseBlocksFor(destination),
          .threads = kElementwiseThreads,
          .reads = {source},
          .writes = {destination}};
}

} // namespace

std::string kernelNamed(llvm::StringRef name, DType dtype) {
  return name.str() + "_" + std::string(dtypeName(dtype));
}

bool mayOverwrite(const LaunchRecord &record, llvm::function_ref<bool(TensorId)> isWritten,
                  llvm::function_ref<bool(TensorId)> isRead,
                  llvm::function_ref<bool(TensorId, TensorId)> sameLayout) {
  const auto *launch = std::get_if<KernelLaunch>(&record.op);
  const Kernel *kernel = launch ? findKernel(launch->kernel) : nullptr;
  if (!kernel)
    return false;
  for (size_t write = 0; write < launch->writes.size(); ++write) {
    if (!isWritten(launch->writes[write]))
      continue;
    for (size_t read = 0; read < launch->reads.size(); ++read)
      if (isRead(launch->reads[read]) && !(kernel->mayOverwrite(write, read) &&
                                           sameLayout(launch->writes[write], launch->reads[read])))
        return false;
  }
  return true;
}

KernelLaunch launchOf(const Kernel &kernel) {
  KernelLaunch launch;
  launch.kernel = kernel.name;
  launch.abiHash = kernel.abiHash;
  return launch;
}

bool takes(const KernelLaunch &record, const RecordTensors &tensors, const BucketBuilder &builder) {
  const Kernel &kernel = *findKernel(record.kernel);
  if (builder.target() != DeviceKind::Cuda ||
      ((kernel.traits & kHopper) && builder.arch() != Arch::Sm90a))
    return false;
  const auto views = [](const std::vector<std::optional<Place>> &places, size_t count) {
    std::vector<OperandView> views;
    for (const std::optional<Place> &place : places)
      views.push_back(place ? operandView(*place) : OperandView());
    views.resize(count);
    return views;
  };
  const auto reads = views(tensors.reads, tensors.reads.size()),
             writes = views(tensors.writes, std::max(tensors.writes.size(), kernel.writes));
  const LaunchView view{record.grid, record.block, record.sharedBytes, reads,
                        writes,      record.ints,  record.floats};
  const size_t statistics = kernel.traits & kRowStatistics ? 1 : 0;
  CGC_CHECK(kernel.takesCountsOf(view) && tensors.writes.size() + statistics >= kernel.writes);
  return kernel.check(view).isOk();
}

bool launch(KernelLaunch record, const RecordTensors &tensors, BucketBuilder &builder) {
  if (!takes(record, tensors, builder))
    return false;
  const auto tensor = [&](const std::optional<Place> &place) {
    return place ? builder.tensor(*place) : kNoTensor;
  };
  for (const std::optional<Place> &place : tensors.reads)
    record.reads.push_back(tensor(place));
  for (const std::optional<Place> &place : tensors.writes)
    record.writes.push_back(tensor(place));
  const size_t writes = findKernel(record.kernel)->writes;
  record.writes.resize(std::max(record.writes.size(), writes), kNoTensor);
  builder.record({std::move(record)});
  return true;
}

bool takes(const Launch &launch, const BucketBuilder &builder) {
  const Kernel *kernel = findKernel(launch.kernel);
  return kernel && (!launch.rowStatistics || (kernel->traits & kRowStatistics)) &&
         takes(recordOf(launch), tensorsOf(launch), builder);
}

bool launch(const Launch &launch, BucketBuilder &builder) {
  return takes(launch, builder) && backend::launch(recordOf(launch), tensorsOf(launch), builder);
}

bool launchWarpRows(std::string kernel, int64_t rows, std::vector<std::optional<Place>> reads,
                    const Place &result, BucketBuilder &builder, std::vector<double> floats,
                    std::optional<Place> rowStatistics) {
  return launch({.kernel = std::move(kernel),
                 .blocks = warpRowBlocks(rows),
                 .threads = kWarpRowThreads,
                 .reads = std::move(reads),
                 .writes = {result},
                 .floats = std::move(floats),
                 .rowStatistics = std::move(rowStatistics)},
                builder);
}

bool launchElementwise(ElementwiseOp op, const Place &x, const std::optional<Place> &z,
                       double number, const Place &result, BucketBuilder &builder) {
  std::vector<Launch> copies;
  const auto converted = [&](const Place &operand) {
    if (operand.dtype == result.dtype)
      return operand;
    const Place copy = builder.temporary(result.dtype, operand.sizes);
    copies.push_back(copyOf(operand, copy));
    return copy;
  };
  const Launch compute = operation("elementwise", int64_t(op), converted(x),
                                   z ? std::optional(converted(*z)) : z, number, result);
  const auto isTaken = [&](const Launch &launch) { return takes(launch, builder); };
  if (!isTaken(compute) || !llvm::all_of(copies, isTaken))
    return false;
  for (const Launch &copy : copies)
    launch(copy, builder);
  return launch(compute, builder);
}

bool launchCompare(CompareOp op, const Place &x, const std::optional<Place> &z, double number,
                   const Place &result, BucketBuilder &builder) {
  return launch(operation("compare", int64_t(op), x, z, number, result), builder);
}

bool launchWhere(const std::optional<Place> &condition, const Operand &x, const Operand &z,
                 const Place &result, BucketBuilder &builder) {
  Launch where{.kernel = "where",
               .blocks = elementwiseBlocksFor(result),
               .threads = kElementwiseThreads,
               .reads = {condition},
               .writes = {result}};
  for (const Operand &operand : {x, z}) {
    const auto *tensor = std::get_if<Place>(&operand);
    where.reads.push_back(tensor ? std::optional(*tensor) : std::nullopt);
    where.floats.push_back(tensor ? 0 : std::get<double>(operand));
  }
  return launch(where, builder);
}

std::optional<Operand> operand(const ir::Arg &arg, const BucketBuilder &builder) {
  if (arg.isValue())
    return builder.place(arg.value());
  // Integers beyond this distance lie closer together than doubles.
  constexpr int64_t kExact = int64_t(1) << 53;
  if (const auto *integer = arg.getIf<int64_t>();
      integer && (*integer < -kExact || *integer > kExact))
    return std::nullopt;
  const std::optional<double> number = arg.asNumber();
  return number ? std::optional<Operand>(*number) : std::nullopt;
}

bool launchCopy(const Place &source, const Place &destination, BucketBuilder &builder) {
  return launch(copyOf(source, destination), builder);
}

} // namespace cgc::backend

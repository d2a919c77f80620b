// checkRecord: one check for each kind of record.
#include "runtime/plan/validate_record.h"

#include "runtime/plan/aten_values.h"
#include "runtime/plan/collective_call.h"
#include "runtime/plan/gemm_call.h"
#include "runtime/plan/invalid.h"
#include "runtime/plan/layout.h"
#include "runtime/plan/names.h"
#include "runtime/plan/plan_file.h"

#include <algorithm>

namespace cgc {
namespace {

// The launch limits of CUDA on every GPU that cgc supports.
constexpr uint32_t kMaxGrid[3] = {0x7fffffff, 65535, 65535}, kMaxBlock[3] = {1024, 1024, 64};
constexpr uint32_t kMaxThreads = 1024;
// The most shared memory that a block can have on any supported GPU. Binding asks the actual GPU,
// which may have less.
constexpr uint32_t kMaxSharedBytes = 227 * 1024;

class RecordCheck {
public:
  RecordCheck(const PlanData &plan, const Bucket &bucket) : plan_(plan), bucket_(bucket) {}

  Status run(const LaunchRecord &record) const {
    if (record.location != kNoLocation && uint32_t(record.location) >= plan_.locations.size())
      return invalidFile("its source location does not exist");
    CGC_TRY(checkIds(recordReads(record)));
    CGC_TRY(checkIds(recordWrites(record)));
    return std::visit([&](const auto &op) { return checkOp(op); }, record.op);
  }

private:
  Status checkIds(const std::vector<TensorId> &ids) const {
    for (TensorId id : ids)
      if (uint32_t(id) >= bucket_.tensors.size())
        return invalidFile("tensor " + std::to_string(uint32_t(id)) + " does not exist");
    return Status::ok();
  }

  Status checkOp(const KernelLaunch &launch) const {
    if (plan_.target != DeviceKind::Cuda)
      return invalidFile("kernels need target cuda");
    if (!isIdentifier(launch.kernel))
      return invalidFile("the kernel's name is empty or not an identifier");
    for (int i = 0; i < 3; ++i)
      if (launch.grid[i] == 0 || launch.grid[i] > kMaxGrid[i] || launch.block[i] == 0 ||
          launch.block[i] > kMaxBlock[i])
        return invalidFile("its grid or block is zero or above what CUDA allows");
    if (uint64_t(launch.block[0]) * launch.block[1] * launch.block[2] > kMaxThreads)
      return invalidFile("its block has more than 1024 threads");
    if (launch.sharedBytes > kMaxSharedBytes)
      return invalidFile("it asks for more shared memory than any GPU has");
    if (std::ranges::count(launch.writes, kNoTensor) == std::ssize(launch.writes))
      return invalidFile("it writes nothing");
    return Status::ok();
  }

  /// Checks a call of an op library.
  Status checkOpCall(const LibraryCall &call) const {
    if (!isPlanName(call.function))
      return invalidFile("the op's name is empty, too long or not printable text");
    if (call.writes.size() != 1 || !call.algorithm.empty())
      return invalidFile("an op of a library writes one tensor and has no algorithm");
    for (TensorId id : call.reads)
      if (id == kNoTensor || !dense(id))
        return invalidFile("an op of a library reads dense tensors, and none is absent");
    return dense(call.writes[0]) ? Status::ok()
                                 : invalidFile("an op of a library writes a dense tensor");
  }

  Status checkOp(const LibraryCall &call) const {
    if (plan_.opLibraryOf(call))
      return checkOpCall(call);
    if (plan_.target != DeviceKind::Cuda)
      return invalidFile("library calls need target cuda");
    if (!isIdentifier(call.library) || !isIdentifier(call.function))
      return invalidFile("the library's or function's name is empty or not an identifier");
    if (call.writes.empty())
      return invalidFile("it writes nothing");
    if (isCollective(call))
      if (const Status status = collectiveCall(call, bucket_.tensors).status(); !status.isOk())
        return invalidFile(status.message());
    if (isGemm(call))
      if (const Status status = gemmCall(call, bucket_.tensors).status(); !status.isOk())
        return invalidFile(status.message());
    return Status::ok();
  }

  Status checkOp(const AtenCall &call) const {
    if (!call.op.starts_with("aten::") || !isIdentifier(std::string_view(call.op).substr(6)) ||
        (!call.overload.empty() && !isIdentifier(call.overload)))
      return invalidFile("not the name of an ATen op");
    for (const AtenArg &arg : call.args) {
      if (const auto *id = std::get_if<TensorId>(&arg); id && *id == kNoTensor)
        return invalidFile("an absent tensor is not written as None");
      if (const auto *dtype = std::get_if<DType>(&arg);
          dtype && static_cast<int>(*dtype) >= kNumDTypes)
        return invalidFile("unknown element type " + std::to_string(int(*dtype)));
    }
    const Status values = checkAtenValues(call, bucket_.tensors);
    return values.isOk() ? values : invalidFile(values.message());
  }

  Status checkOp(const Memcpy &copy) const {
    const TensorRef &source = bucket_.tensors[uint32_t(copy.source)];
    const TensorRef &destination = bucket_.tensors[uint32_t(copy.destination)];
    if (source.dtype != destination.dtype || source.sizes != destination.sizes)
      return invalidFile("source and destination differ in element type or sizes");
    if (!isDense(source.sizes, source.strides) || !isDense(destination.sizes, destination.strides))
      return invalidFile("source and destination have to be dense");
    if (overlap(copy.source, copy.destination))
      return invalidFile("source and destination overlap");
    return Status::ok();
  }

  Status checkOp(const Memset &set) const {
    const TensorRef &tensor = bucket_.tensors[uint32_t(set.destination)];
    return isDense(tensor.sizes, tensor.strides) ? Status::ok()
                                                 : invalidFile("the destination has to be dense");
  }

  Status checkOp(const HostCall &call) const {
    if (!isPlanName(call.module) || !isIdentifier(call.method))
      return invalidFile(
          "the path of the host's module is empty, too long or not printable text, or its "
          "method is not an identifier");
    if (call.writes.empty())
      return invalidFile("it writes nothing");
    for (const auto *ids : {&call.reads, &call.writes})
      for (TensorId id : *ids)
        if (!dense(id))
          return invalidFile("the tensors of a host call have to be dense");
    for (size_t i = 0; i < call.writes.size(); ++i) {
      for (TensorId read : call.reads)
        if (overlap(call.writes[i], read))
          return invalidFile("a result of a host call overlaps what it reads");
      for (size_t j = 0; j < i; ++j)
        if (overlap(call.writes[i], call.writes[j]))
          return invalidFile("two results of a host call overlap");
    }
    return Status::ok();
  }

  bool dense(TensorId id) const {
    const TensorRef &tensor = bucket_.tensors[uint32_t(id)];
    return isDense(tensor.sizes, tensor.strides);
  }

  /// Whether two dense tensors share memory.
  bool overlap(TensorId first, TensorId second) const {
    return cgc::overlap(bucket_.tensors[uint32_t(first)], bucket_.tensors[uint32_t(second)]);
  }

  const PlanData &plan_;
  const Bucket &bucket_;
};

} // namespace

Status checkRecord(const PlanData &plan, const Bucket &bucket, const LaunchRecord &record) {
  return RecordCheck(plan, bucket).run(record);
}

} // namespace cgc

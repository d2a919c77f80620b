// The model of a bucket's time: a roofline for each record.
#include "backend/time_model.h"

#include "backend/gemm_model.h"
#include "backend/gemm_record.h"
#include "runtime/plan/branches.h"
#include "runtime/plan/collective_call.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace cgc::backend {
namespace {

/// What a machine does in a microsecond.
struct Machine {
  double multiplications16; ///< Of f16 and bf16, each with an addition.
  double multiplications32; ///< Of all other types.
  double bytes;             ///< Of memory traffic.
  double collectiveBytes;   ///< Of a collective's operands.
  double launch;            ///< The microseconds of a record that does nothing.
};
/// NVIDIA H200 SXM, from its data sheet: 989 TFLOP/s dense in f16, 67 TFLOP/s in f32, 4.8 TB/s. The
/// launch is the distance of two kernels in a graph without programmatic edges. Collectives:
/// all-reduces of 25 MB by NCCL between two GPUs (docs/log, 2026-11-29, two GPUs).
constexpr Machine kH200 = {989e6 / 2, 67e6 / 2, 4.8e6, 170e3, 1};
/// The H200's boost clock: cycles in a microsecond.
constexpr double kH200Clock = 1980;
/// Some cores of a server: 200 GFLOP/s, 20 GB/s, and a call through LibTorch's dispatcher.
constexpr Machine kCpu = {200e3 / 2, 200e3 / 2, 20e3, 20e3, 5};

const TensorRef &tensorOf(TensorId id, const Bucket &bucket) {
  return bucket.tensors[uint32_t(id)];
}

double elements(const TensorRef &tensor) {
  double count = 1;
  for (int64_t size : tensor.sizes)
    count *= double(size);
  return count;
}

/// The bytes that a record touches. Elements that a stride of 0 repeats count once.
double bytesOf(const LaunchRecord &record, const Bucket &bucket) {
  double bytes = 0;
  for (const auto &ids : {recordReads(record), recordWrites(record)})
    for (TensorId id : ids) {
      const TensorRef &tensor = tensorOf(id, bucket);
      const double extent = double(tensorExtent(tensor).value_or(0));
      bytes += std::min(extent, elements(tensor) * double(dtypeSize(tensor.dtype)));
    }
  return bytes;
}

/// The multiplications of an ATen call. 0 unless they take longer than its memory traffic.
double multiplicationsOf(const AtenCall &call, const LaunchRecord &record, const Bucket &bucket) {
  const auto reads = recordReads(record), writes = recordWrites(record);
  const std::string_view op = std::string_view(call.op).substr(call.op.find("::") + 2);
  const auto read = [&](size_t i) -> const TensorRef & { return tensorOf(reads[i], bucket); };
  const auto isOneOf = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, op) != names.end();
  };
  if (reads.size() < 2 || writes.empty())
    return 0;
  const double results = elements(tensorOf(writes[0], bucket));
  if (isOneOf({"mm", "bmm", "matmul", "linear", "addmm", "baddbmm"})) {
    const bool adds = op.starts_with("add") || op.starts_with("badd");
    const TensorRef &x = read(adds ? 1 : 0);
    return x.sizes.empty() ? 0 : results * double(x.sizes.back());
  }
  if (op.starts_with("conv")) {
    const TensorRef &weight = read(1);
    const bool isEmpty = weight.sizes.empty() || weight.sizes[0] == 0;
    return isEmpty ? 0 : results * elements(weight) / double(weight.sizes[0]);
  }
  if (isOneOf({"scaled_dot_product_attention", "_scaled_dot_product_attention_math"}) &&
      read(1).sizes.size() >= 2)
    return 2 * elements(read(0)) * double(read(1).sizes[read(1).sizes.size() - 2]);
  return 0;
}

/// The microseconds of a record without its launch.
double workOf(const LaunchRecord &record, const Bucket &bucket, DeviceKind target,
              int64_t multiprocessors) {
  const Machine &machine = target == DeviceKind::Cuda ? kH200 : kCpu;
  if (isCollective(record))
    return bytesOf(record, bucket) / 2 / machine.collectiveBytes; // Reads and writes are alike.
  const double traffic = bytesOf(record, bucket) / machine.bytes;
  const auto micros = [&](double multiplications, DType dtype) {
    const bool isHalf = dtype == DType::F16 || dtype == DType::BF16;
    const double rate = isHalf ? machine.multiplications16 : machine.multiplications32;
    return std::max(traffic, multiplications / rate);
  };
  if (const auto gemm = decodeGemm(record, bucket)) {
    if (const auto *kernel = std::get_if<GemmKernelChoice>(&gemm->choice))
      return std::max(traffic, gemmClocks(gemm->problem, *kernel, multiprocessors) / kH200Clock);
    return micros(gemm->problem.multiplications(), gemm->problem.dtype);
  }
  if (const auto *call = std::get_if<AtenCall>(&record.op))
    if (const auto writes = recordWrites(record); !writes.empty())
      return micros(multiplicationsOf(*call, record, bucket), tensorOf(writes[0], bucket).dtype);
  return traffic;
}

} // namespace

double estimateMicros(const LaunchRecord &record, const Bucket &bucket, DeviceKind target,
                      int64_t multiprocessors) {
  return (target == DeviceKind::Cuda ? kH200 : kCpu).launch +
         workOf(record, bucket, target, multiprocessors);
}

double estimateMicros(const Bucket &bucket, DeviceKind target, int64_t multiprocessors) {
  const auto microsOf = [&](const LaunchRecord &record) {
    return estimateMicros(record, bucket, target, multiprocessors);
  };
  double micros = 0;
  for (const LaunchRecord &record : bucket.records)
    if (record.branch == 0 || record.branch == kUpdateBranch) // Updates take bandwidth from others.
      micros += microsOf(record);
  for (const ParallelRegion &region : parallelRegions(bucket.records)) {
    std::array<double, kMaxBranches + 1> branches{};
    for (size_t i = region.begin; i < region.end; ++i)
      if (!isDetached(bucket.records[i].branch))
        branches[bucket.records[i].branch] += microsOf(bucket.records[i]);
    micros += std::ranges::max(branches);
  }
  return micros;
}

} // namespace cgc::backend

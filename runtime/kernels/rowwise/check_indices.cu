// check_indices: reports the first index out of range.
#include "runtime/kernels/rowwise/check_indices.h"

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"

#include <algorithm>

namespace cgc {
namespace {

using namespace device;

constexpr int kRank = 16; ///< The most dimensions of a plan's tensor.

struct CheckIndicesParameters {
  const void *x;
  const int64_t *report;
  int64_t *y;
  CheckIndicesNumbers numbers;
  int64_t elements;
  int rank, bytes; ///< `bytes` is the size of an element.
  bool isSigned;
  int64_t sizes[kRank], strides[kRank];
};

__device__ int64_t indexAt(const CheckIndicesParameters &p, int64_t at) {
  switch (p.bytes) {
  case 1:
    return p.isSigned ? int64_t(static_cast<const int8_t *>(p.x)[at])
                      : int64_t(static_cast<const uint8_t *>(p.x)[at]);
  case 2:
    return static_cast<const int16_t *>(p.x)[at];
  case 4:
    return static_cast<const int32_t *>(p.x)[at];
  default:
    return static_cast<const int64_t *>(p.x)[at];
  }
}

__global__ void __launch_bounds__(kCheckIndicesThreads)
    checkIndices(const __grid_constant__ CheckIndicesParameters p) {
  griddepLaunchDependents();
  griddepWait();
  __shared__ unsigned long long first;
  if (threadIdx.x == 0)
    first = p.elements;
  __syncthreads();
  int64_t position = threadIdx.x, index = 0;
  for (; position < p.elements; position += kCheckIndicesThreads) {
    int64_t at = 0, rest = position;
    for (int d = p.rank - 1; d >= 0; --d) {
      const int64_t quotient = rest / p.sizes[d];
      at += (rest - quotient * p.sizes[d]) * p.strides[d];
      rest = quotient;
    }
    index = indexAt(p, at);
    if ((index < p.numbers.least || index >= p.numbers.end) && index != p.numbers.exempt) {
      atomicMin(&first, static_cast<unsigned long long>(position));
      break;
    }
  }
  __syncthreads();
  const bool isFound = first < p.elements;
  // The thread that found it, or one of them if there is none.
  if (isFound ? position != int64_t(first) : threadIdx.x != 0)
    return;
  if (p.y == p.report && !isFound) // Reports are in host memory, which is slow to read.
    return;
  if (!isFound || p.report[kReportedCheck] != 0) {
    for (int i = 0; i < kReportNumbers; ++i)
      p.y[i] = p.report[i];
    return;
  }
  p.y[kReportedPosition] = position;
  p.y[kReportedValue] = index;
  p.y[kReportedBegin] = p.numbers.begin;
  p.y[kReportedCount] = p.numbers.count;
  p.y[kReportedTotal] = p.numbers.total;
  __threadfence_system(); // Who sees the check sees the other numbers.
  p.y[kReportedCheck] = p.numbers.check;
}

Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const OperandView &x = launch.reads[0];
  CheckIndicesParameters p{.x = at.reads[0],
                           .report = static_cast<const int64_t *>(at.reads[1]),
                           .y = static_cast<int64_t *>(at.writes[0]),
                           .numbers = *checkCheckIndices(launch),
                           .elements = 1,
                           .rank = int(x.sizes.size()),
                           .bytes = int(dtypeSize(x.dtype)),
                           .isSigned = x.dtype != DType::U8};
  for (int d = p.rank - 1; d >= 0; --d) {
    p.sizes[d] = x.sizes[d];
    p.strides[d] = x.strides.empty() ? p.elements : x.strides[d];
    p.elements *= x.sizes[d];
  }
  return KernelParameters(p);
}

} // namespace

CGC_KERNEL_OF(check_indices, checkIndices, bind)

} // namespace cgc

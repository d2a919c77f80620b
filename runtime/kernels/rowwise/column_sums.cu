// column_sums_*: the sums of the columns of a matrix in f32, such as the gradient of a bias. A CTA
// adds 16 columns over all rows, always in the same order.
#include "runtime/kernels/rowwise/column_sums.h"

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"

namespace cgc {
namespace {

using namespace device;

template <class T> struct ColumnSumsParameters {
  const T *x;
  float *sums;
  int rows, columns;
};

template <class T>
__global__ void __launch_bounds__(kColumnSumsThreads)
    columnSums(const __grid_constant__ ColumnSumsParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  constexpr int kVector = kColumnSumsVector, kVectors = int(kColumnSumsColumns) / kVector,
                kRows = int(kColumnSumsThreads) / kVectors;
  // 16 lanes of a warp have rows of their own of the same vector.
  const int vector = threadIdx.x % kVectors, row = threadIdx.x / kVectors;
  const int column = blockIdx.x * int(kColumnSumsColumns) + vector * kVector;
  float sums[kVector] = {};
  constexpr int kLoads = 8; // In flight in each thread.
  for (int r = row; r < p.rows && column < p.columns; r += kLoads * kRows) {
    Vector<T> loaded[kLoads] = {};
#pragma unroll
    for (int l = 0; l < kLoads; ++l)
      if (r + l * kRows < p.rows)
        loaded[l] = loadVector(p.x + int64_t(r + l * kRows) * p.columns + column);
#pragma unroll
    for (int l = 0; l < kLoads; ++l)
#pragma unroll
      for (int i = 0; i < kVector; ++i)
        sums[i] += toFloat(loaded[l].v[i]);
  }
#pragma unroll
  for (int i = 0; i < kVector; ++i)
#pragma unroll
    for (int offset = kVectors; offset < 32; offset *= 2)
      sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], offset);
  constexpr int kWarps = int(kColumnSumsThreads) / 32;
  __shared__ float parts[kWarps][kColumnSumsColumns];
  if (threadIdx.x % 32 < kVectors)
#pragma unroll
    for (int i = 0; i < kVector; ++i)
      parts[threadIdx.x / 32][vector * kVector + i] = sums[i];
  __syncthreads();
  const int mine = blockIdx.x * int(kColumnSumsColumns) + threadIdx.x;
  if (threadIdx.x >= kColumnSumsColumns || mine >= p.columns)
    return;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w)
    sum += parts[w][threadIdx.x];
  p.sums[mine] = sum;
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const ColumnSumsLaunch l = *checkColumnSums(launch, kDTypeOf<T>);
  return KernelParameters(ColumnSumsParameters<T>{static_cast<const T *>(at.reads[0]),
                                                  static_cast<float *>(at.writes[0]), int(l.rows),
                                                  int(l.columns)});
}

} // namespace

CGC_KERNEL_OF(column_sums_f16, columnSums<__half>, bind<__half>)
CGC_KERNEL_OF(column_sums_bf16, columnSums<__nv_bfloat16>, bind<__nv_bfloat16>)

} // namespace cgc

// argmax_*: the column of the maximum over the last dimension. Of equal maxima the first wins; NaN
// is the largest value.
#include "runtime/kernels/rowwise/argmax.h"

#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/rowwise/warp_rows.cuh"

namespace cgc {
namespace {

using namespace device;

template <class T> struct ArgmaxParameters {
  const T *x;
  int64_t *y;
  int64_t rows;
  int columns;
};

/// The value to compare: f32 for 16-bit floats, otherwise the element itself.
template <class T> __device__ auto comparable(T value) {
  if constexpr (sizeof(T) == 2)
    return toFloat(value);
  else
    return value;
}

constexpr int kNoColumn = INT32_MAX;

template <class V> struct Candidate {
  V value;
  int column = kNoColumn;

  __device__ bool beats(const Candidate &other) const {
    if (column == kNoColumn || other.column == kNoColumn)
      return column < other.column;
    const bool isNan = value != value, otherIsNan = other.value != other.value;
    if (isNan != otherIsNan)
      return isNan;
    if (isNan || value == other.value)
      return column < other.column;
    return value > other.value;
  }
};

template <class T>
__global__ void __launch_bounds__(kWarpRowThreads)
    argmax(const __grid_constant__ ArgmaxParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  const int64_t row = warpRow();
  if (row >= p.rows)
    return;
  const T *x = p.x + row * p.columns;
  using Value = decltype(comparable(*x));
  Candidate<Value> best = {};
  best.column = kNoColumn;
  for (int64_t column = threadIdx.x % 32; column < p.columns; column += 32)
    if (const Candidate<Value> next{comparable(x[column]), int(column)}; next.beats(best))
      best = next;
  for (int offset = 16; offset > 0; offset /= 2) {
    const Candidate<Value> other{__shfl_xor_sync(0xffffffffu, best.value, offset),
                                 __shfl_xor_sync(0xffffffffu, best.column, offset)};
    if (other.beats(best))
      best = other;
  }
  if (threadIdx.x % 32 == 0)
    p.y[row] = best.column;
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const ArgmaxLaunch l = *checkArgmax(launch, kDTypeOf<T>);
  return KernelParameters(ArgmaxParameters<T>{static_cast<const T *>(at.reads[0]),
                                              static_cast<int64_t *>(at.writes[0]), l.rows,
                                              static_cast<int>(l.columns)});
}

} // namespace

CGC_FLOAT_KERNELS(argmax, argmax, bind)
CGC_KERNEL_OF(argmax_i64, argmax<int64_t>, bind<int64_t>)
CGC_KERNEL_OF(argmax_i32, argmax<int32_t>, bind<int32_t>)

} // namespace cgc

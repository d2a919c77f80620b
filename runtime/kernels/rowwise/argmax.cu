// argmax_*: the column of the maximum over the last dimension. Of equal maxima the first wins; NaN
// is the largest value.
#include "runtime/kernels/kernel_checks.h"
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
  releaseSuccessor();
  waitForPredecessor();
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

template <class T> Result<KernelParameters> bind(const KernelArguments &a) {
  const TensorView &x = a.reads[0], &y = a.writes[0];
  const uint64_t elements = elementsOf(x);
  if (!isDenseOf(x, kDTypeOf<T>, elements) || x.sizes.empty() || elements == 0 ||
      x.sizes.back() >= kNoColumn)
    return refuseArguments("x has to be dense, of one dimension or more");
  const int64_t columns = x.sizes.back(), rows = static_cast<int64_t>(elements) / columns;
  if (!isDenseOf(y, DType::I64, rows))
    return refuseArguments("y has to be dense i64, one element for each row");
  if (rows > INT32_MAX || !hasLaunch(a, warpRowBlocks(rows), kWarpRowThreads))
    return refuseWarpRows();
  return KernelParameters(ArgmaxParameters<T>{static_cast<const T *>(x.data),
                                              static_cast<int64_t *>(y.data), rows,
                                              static_cast<int>(columns)});
}

} // namespace

CGC_FLOAT_KERNELS(argmax, argmax, bind)
CGC_KERNEL_OF(argmax_i64, argmax<int64_t>, bind<int64_t>)
CGC_KERNEL_OF(argmax_i32, argmax<int32_t>, bind<int32_t>)

} // namespace cgc

// normalize_*: divides each row by its Euclidean norm, computed in f32.
#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/rowwise/warp_rows.cuh"

namespace cgc {
namespace {

using namespace device;

template <class T> struct NormalizeParameters {
  const T *x;
  T *y;
  int64_t rows, columns;
  float eps; ///< The least divisor.
  bool vectors;
};

template <class T>
__global__ void __launch_bounds__(kWarpRowThreads)
    normalize(const __grid_constant__ NormalizeParameters<T> p) {
  releaseSuccessor();
  waitForPredecessor();
  const int64_t row = warpRow();
  if (row >= p.rows)
    return;
  const T *x = p.x + row * p.columns;
  T *y = p.y + row * p.columns;
  float squares = 0;
  forColumns<T>(p.columns, p.vectors, [&](int64_t column, auto width) {
    float values[width];
    loadFloats(x + column, values);
#pragma unroll
    for (int i = 0; i < width; ++i)
      squares += values[i] * values[i];
  });
  const float length = sqrtf(warpSum(squares));
  const float divisor = length < p.eps ? p.eps : length; // Keeps NaN.
  forColumns<T>(p.columns, p.vectors, [&](int64_t column, auto width) {
    float values[width];
    loadFloats(x + column, values);
#pragma unroll
    for (int i = 0; i < width; ++i)
      values[i] /= divisor;
    storeFloats(y + column, values);
  });
}

template <class T> Result<KernelParameters> bind(const KernelArguments &a) {
  const TensorView &x = a.reads[0], &y = a.writes[0];
  const uint64_t elements = elementsOf(x);
  if (!isDenseOf(x, kDTypeOf<T>, elements) || x.sizes.empty() || elements == 0)
    return refuseArguments("x has to be dense, of one dimension or more");
  if (!isDenseOf(y, kDTypeOf<T>, elements))
    return refuseArguments("y has to be dense, of as many elements as x");
  const int64_t columns = x.sizes.back(), rows = static_cast<int64_t>(elements) / columns;
  if (rows > INT32_MAX || !hasLaunch(a, warpRowBlocks(rows), kWarpRowThreads))
    return refuseWarpRows();
  return KernelParameters(NormalizeParameters<T>{
      static_cast<const T *>(x.data), static_cast<T *>(y.data), rows, columns,
      static_cast<float>(a.floats[0]), hasVectorRows(x, columns) && hasVectorRows(y, columns)});
}

} // namespace

CGC_FLOAT_KERNELS(normalize, normalize, bind)

} // namespace cgc

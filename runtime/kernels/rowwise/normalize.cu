// normalize_*: divides each row by its Euclidean norm, computed in f32.
#include "runtime/kernels/rowwise/normalize.h"

#include "runtime/kernels/device/kernel_rows.h"
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
  griddepLaunchDependents();
  griddepWait();
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

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const NormalizeLaunch l = *checkNormalize(launch, kDTypeOf<T>);
  return KernelParameters(NormalizeParameters<T>{static_cast<const T *>(at.reads[0]),
                                                 static_cast<T *>(at.writes[0]), l.rows, l.columns,
                                                 static_cast<float>(launch.floats[0]), l.vectors});
}

} // namespace

CGC_FLOAT_KERNELS(normalize, normalize, bind)

} // namespace cgc

// rows_*: gathers one row of each batch, by index or the first one.
#include "runtime/kernels/rowwise/rows.h"

#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/rowwise/warp_rows.cuh"

namespace cgc {
namespace {

using namespace device;

template <class T> struct RowsParameters {
  const T *x;
  const void *indices; ///< Null: the first row of each batch.
  T *y;
  int64_t batches, rows, columns, batchStride, rowStride; ///< Strides of x.
  bool isWide, vectors;
};

template <class T>
__global__ void __launch_bounds__(kWarpRowThreads)
    pickRows(const __grid_constant__ RowsParameters<T> p) {
  griddepLaunchDependents();
  griddepWait();
  const int64_t batch = warpRow();
  if (batch >= p.batches)
    return;
  const int64_t row = p.indices ? loadIndex(p.indices, p.isWide, batch, p.rows) : 0;
  addRow<T>(p.y + batch * p.columns, p.x + batch * p.batchStride + row * p.rowStride, nullptr,
            p.columns, p.vectors);
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const RowsLaunch l = *checkRows(launch, kDTypeOf<T>);
  return KernelParameters(RowsParameters<T>{static_cast<const T *>(at.reads[0]), at.reads[1],
                                            static_cast<T *>(at.writes[0]), l.batches, l.rows,
                                            l.columns, l.batchStride, l.rowStride,
                                            launch.reads[1].dtype == DType::I64, l.vectors});
}

} // namespace

CGC_FLOAT_KERNELS(rows, pickRows, bind)

} // namespace cgc

// rows_*: gathers one row of each batch, by index or the first one.
#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/rowwise/warp_rows.cuh"

#include <algorithm>

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
  releaseSuccessor();
  waitForPredecessor();
  const int64_t batch = warpRow();
  if (batch >= p.batches)
    return;
  const int64_t row = p.indices ? loadIndex(p.indices, p.isWide, batch, p.rows) : 0;
  addRow<T>(p.y + batch * p.columns, p.x + batch * p.batchStride + row * p.rowStride, nullptr,
            p.columns, p.vectors);
}

template <class T> Result<KernelParameters> bind(const KernelArguments &a) {
  constexpr DType dtype = kDTypeOf<T>;
  const TensorView &x = a.reads[0], &indices = a.reads[1], &y = a.writes[0];
  if (!x.data || x.dtype != dtype || x.sizes.size() != 3 ||
      std::ranges::find(x.sizes, 0) != x.sizes.end() || x.sizes[0] > INT32_MAX ||
      (!x.strides.empty() && x.strides[2] != 1))
    return refuseArguments("x has to be [batches, rows, columns] with dense columns");
  const int64_t batches = x.sizes[0], rows = x.sizes[1], columns = x.sizes[2];
  const int64_t batchStride = x.strides.empty() ? rows * columns : x.strides[0],
                rowStride = x.strides.empty() ? columns : x.strides[1];
  if (indices.data && !isIndicesOf(indices, batches))
    return refuseArguments("indices have to be dense i64 or i32, one for each batch");
  const auto elements = checkedMul(batches, columns);
  if (!elements || !isDenseOf(y, dtype, *elements))
    return refuseArguments("y has to be dense, [batches, columns]");
  if (!hasLaunch(a, warpRowBlocks(batches), kWarpRowThreads))
    return refuseWarpRows();
  const bool vectors = hasVectorRows(x, columns) && hasVectorRows(x, batchStride) &&
                       hasVectorRows(x, rowStride) && hasVectorRows(y, columns);
  return KernelParameters(RowsParameters<T>{
      static_cast<const T *>(x.data), indices.data, static_cast<T *>(y.data), batches, rows,
      columns, batchStride, rowStride, indices.dtype == DType::I64, vectors});
}

} // namespace

CGC_FLOAT_KERNELS(rows, pickRows, bind)

} // namespace cgc

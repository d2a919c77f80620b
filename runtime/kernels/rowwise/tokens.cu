// tokens_*: puts a class token before the patches of each image and adds positions.
#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/rowwise/warp_rows.cuh"

namespace cgc {
namespace {

using namespace device;

template <class T> struct TokensParameters {
  const T *patches, *token, *positions; ///< positions may be null.
  T *y;
  int64_t rows, tokens, columns; ///< `tokens`: of an image, with the class token.
  bool vectors;
};

template <class T>
__global__ void __launch_bounds__(kWarpRowThreads)
    tokens(const __grid_constant__ TokensParameters<T> p) {
  releaseSuccessor();
  waitForPredecessor();
  const int64_t row = warpRow();
  if (row >= p.rows)
    return;
  const int64_t image = row / p.tokens, token = row % p.tokens;
  // Each image up to this one has one patch less than it has tokens.
  const T *from = token == 0 ? p.token : p.patches + (row - image - 1) * p.columns;
  const T *position = p.positions ? p.positions + token * p.columns : nullptr;
  addRow(p.y + row * p.columns, from, position, p.columns, p.vectors);
}

template <class T> Result<KernelParameters> bind(const KernelArguments &a) {
  constexpr DType dtype = kDTypeOf<T>;
  const TensorView &patches = a.reads[0], &token = a.reads[1], &positions = a.reads[2],
                   &y = a.writes[0];
  if (!isDenseOf(patches, dtype, elementsOf(patches)) || patches.sizes.size() != 3 ||
      elementsOf(patches) == 0)
    return refuseArguments("patches have to be dense, [images, patches, columns]");
  const int64_t images = patches.sizes[0], count = patches.sizes[1] + 1, columns = patches.sizes[2];
  const int64_t rows = images * count;
  if (!isDenseOf(token, dtype, columns))
    return refuseArguments("the class token has to be dense, of as many elements as a patch");
  if (!isAbsentOrDenseOf(positions, dtype, count * columns))
    return refuseArguments("positions have to be dense, a row for each token of an image");
  if (!isDenseOf(y, dtype, rows * columns) || rows > INT32_MAX)
    return refuseArguments("y has to be dense, [images, 1 + patches, columns]");
  if (!hasLaunch(a, warpRowBlocks(rows), kWarpRowThreads))
    return refuseWarpRows();
  const bool vectors = hasVectorRows(patches, columns) && hasVectorRows(token, columns) &&
                       hasVectorRows(positions, columns) && hasVectorRows(y, columns);
  return KernelParameters(
      TokensParameters<T>{static_cast<const T *>(patches.data), static_cast<const T *>(token.data),
                          static_cast<const T *>(positions.data), static_cast<T *>(y.data), rows,
                          count, columns, vectors});
}

} // namespace

CGC_FLOAT_KERNELS(tokens, tokens, bind)

} // namespace cgc

// tokens_*: puts a class token before the patches of each image and adds positions.
#include "runtime/kernels/rowwise/tokens.h"

#include "runtime/kernels/device/kernel_rows.h"
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
  griddepLaunchDependents();
  griddepWait();
  const int64_t row = warpRow();
  if (row >= p.rows)
    return;
  const int64_t image = row / p.tokens, token = row % p.tokens;
  // Each image up to this one has one patch less than it has tokens.
  const T *from = token == 0 ? p.token : p.patches + (row - image - 1) * p.columns;
  const T *position = p.positions ? p.positions + token * p.columns : nullptr;
  addRow(p.y + row * p.columns, from, position, p.columns, p.vectors);
}

template <class T>
Result<KernelParameters> bind(const LaunchView &launch, const LaunchAddresses &at) {
  const TokensLaunch l = *checkTokens(launch, kDTypeOf<T>);
  return KernelParameters(
      TokensParameters<T>{static_cast<const T *>(at.reads[0]), static_cast<const T *>(at.reads[1]),
                          static_cast<const T *>(at.reads[2]), static_cast<T *>(at.writes[0]),
                          l.rows, l.tokens, l.columns, l.vectors});
}

} // namespace

CGC_FLOAT_KERNELS(tokens, tokens, bind)

} // namespace cgc

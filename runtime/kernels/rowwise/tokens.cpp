// Checks launches of tokens_*.
#include "runtime/kernels/rowwise/tokens.h"

#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/rowwise/warp_rows.h"

namespace cgc {

Result<TokensLaunch> checkTokens(const LaunchView &launch, DType dtype) {
  const OperandView &patches = launch.reads[0], &token = launch.reads[1],
                    &positions = launch.reads[2], &y = launch.writes[0];
  if (!isDenseOf(patches, dtype, elementsOf(patches)) || patches.sizes.size() != 3 ||
      elementsOf(patches) == 0)
    return refuseLaunch("patches have to be dense, [images, patches, columns]");
  const int64_t images = patches.sizes[0], tokens = patches.sizes[1] + 1,
                columns = patches.sizes[2];
  const int64_t rows = images * tokens;
  if (!isDenseOf(token, dtype, columns))
    return refuseLaunch("the class token has to be dense, of as many elements as a patch");
  if (!isAbsentOrDenseOf(positions, dtype, tokens * columns))
    return refuseLaunch("positions have to be dense, a row for each token of an image");
  if (!isDenseOf(y, dtype, rows * columns) || rows > INT32_MAX)
    return refuseLaunch("y has to be dense, [images, 1 + patches, columns]");
  if (!hasShape(launch, warpRowBlocks(rows), kWarpRowThreads))
    return refuseWarpRows();
  const bool vectors = hasVectorRows(patches, columns) && hasVectorRows(token, columns) &&
                       hasVectorRows(positions, columns) && hasVectorRows(y, columns);
  return TokensLaunch{rows, tokens, columns, vectors};
}

CGC_FLOAT_KERNEL_CHECKS(tokens, checkTokens)

} // namespace cgc

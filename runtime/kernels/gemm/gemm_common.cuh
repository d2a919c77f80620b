// What the kernels of products have in common: their parameter, the ring of stages and the products
// over it, how tokens are normalised, and what their bind functions share. For product.cuh and
// product_persistent.cuh.
#pragma once

#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/divider.h"
#include "runtime/kernels/sm90/hopper.cuh"
#include "runtime/kernels/rowwise/row_statistics.cuh"
#include "runtime/kernels/gemm/gemm.h"
#include "runtime/kernels/sm90/tensor_map.h"
#include "runtime/kernels/sm90/wgmma.cuh"

namespace cgc {
namespace {

using namespace device;

/// Tiles that clusters take in turns.
struct ClusterTiles {
  int count = 0;
  Divider ofRow;      ///< How many lie in a row.
  int firstToken = 0; ///< Of all these tiles.
};

template <class T> struct ProductParameters {
  CUtensorMap w, x;
  CUtensorMap yTiles, residualTiles; ///< Of persistent ones, in their boxes.
  const T *bias, *residual;          ///< Null where there is none.
  T *y;
  int64_t residualStride, yStride; ///< Between rows, in elements.
  Moments *yMoments;               ///< [tokens, yGroups]; null if nobody asks for them.
  const Moments *xMoments;         ///< [tokens, xGroups]; of product_norm, like the next two.
  float eps, perColumn;            ///< perColumn is 1 / depth.
  int tokens, features, depth, stages;
  int xGroups, yGroups; ///< momentGroups() of depth and of features.
  Activation activation;
  /// Of persistent ones; the second are of the pairs beside clusters of eight.
  ClusterTiles tiles, tilesBeside;
  /// A row of tiles is one of tokens: the smaller operand is read again and again, the larger once.
  bool tokensFirst;
  /// Nothing writes w, or bias, while the plan runs.
  bool wIsConstant, biasIsConstant;
};

/// Columns of a stage: rows of 128 bytes.
constexpr int kDepthTile = kProductDepth;

/// Where in the ring of stages a thread is.
struct Ring {
  int stages, stage = 0;
  uint32_t phase = 0;
  __device__ void next() {
    if (++stage == stages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

/// What normalises a token's sums, from the moments of the whole token. The weights of a feature
/// sum to 0, so that its mean adds nothing.
template <class T> __device__ float scaleOf(const ProductParameters<T> &p, const Moments &of) {
  const float mean = of.sum * p.perColumn, variance = of.squares * p.perColumn - mean * mean;
  return rsqrtf(fmaxf(variance, 0) + p.eps);
}
/// From the moments of a token's groups: two at a time, 16 bytes, and as many on their way as there
/// mostly are; one after the other where their number is odd.
template <class T> __device__ float scaleOf(const ProductParameters<T> &p, int64_t token) {
  constexpr int kAtOnce = 8;
  const Moments *const row = p.xMoments + token * p.xGroups;
  Moments all{};
  const int pairs = p.xGroups % 2 == 0 ? p.xGroups / 2 : 0;
#pragma unroll 1
  for (int first = 0; first < pairs; first += kAtOnce) {
    float4 of[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      of[i] = first + i < pairs ? reinterpret_cast<const float4 *>(row)[first + i] : float4{};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      all.addTwo(of[i]);
  }
#pragma unroll 1
  for (int g = 2 * pairs; g < p.xGroups; ++g) {
    all.sum += row[g].sum;
    all.squares += row[g].squares;
  }
  return scaleOf(p, all);
}

/// Multiplies the operands of `steps` stages of the ring; `w` and `x` describe those of a warpgroup
/// in stage 0. Calls release with each stage that has been read but the last, which it returns.
template <class T, int kTokens, int kStageBytes, class F>
__device__ int multiplyStages(float (&sums)[kTokens / 2], Ring &ring, uint64_t *full, int steps,
                              uint64_t w, uint64_t x, F release) {
  int last = 0; // The stage of the iteration before.
#pragma unroll 1
  for (int i = 0; i < steps; ++i, ring.next()) {
    waitBarrier(&full[ring.stage], ring.phase);
    const uint64_t wOf = descriptorAt(w, ring.stage * kStageBytes);
    const uint64_t xOf = descriptorAt(x, ring.stage * kStageBytes);
    wgmmaFence();
#pragma unroll
    for (int k = 0; k < kDepthTile / 16; ++k)
      Wgmma<T, kTokens>::run(sums, descriptorAt(wOf, k * 32), descriptorAt(xOf, k * 32), i + k > 0);
    wgmmaCommit();
    wgmmaWait<1>();
    if (i > 0)
      release(last);
    last = ring.stage;
  }
  wgmmaWait<0>();
  return last;
}

/// Where the rows of a matrix of 16-bit floats begin, if tensor copies and 16-byte accesses can
/// have it: dense rows, 16-byte aligned.
inline std::optional<int64_t> rowStrideOf(const TensorView &matrix, DType dtype, int64_t rows,
                                          int64_t columns) {
  if (!matrix.data || matrix.dtype != dtype || matrix.sizes.size() != 2 ||
      matrix.sizes[0] != rows || matrix.sizes[1] != columns ||
      reinterpret_cast<uintptr_t>(matrix.data) % 16 != 0)
    return std::nullopt;
  if (matrix.strides.empty())
    return columns;
  if (matrix.strides[1] != 1 || matrix.strides[0] < columns || matrix.strides[0] % 8 != 0)
    return std::nullopt;
  return matrix.strides[0];
}

/// The parameter but for what only persistent kernels have. Operands are copied in boxes of so many
/// rows.
template <class T, bool kNorm>
Result<ProductParameters<T>> productParameters(const KernelArguments &a, const ProductTile &tile,
                                               uint32_t wBoxRows, uint32_t xBoxRows) {
  constexpr DType dtype = kDTypeOf<T>;
  const int64_t tokens = a.ints[0], features = a.ints[1], depth = a.ints[2], kind = a.ints[3];
  const int64_t most = int64_t(1) << 30;
  if (tokens < 1 || features < 8 || depth < 8 || tokens > most || features > most || depth > most ||
      features % 8 != 0 || depth % 8 != 0)
    return refuseArguments("features and depth have to be positive multiples of 8");
  if (kind < 0 || kind >= kNumActivations)
    return refuseArguments("there is no such activation");
  if (!tile.takes(depth))
    return refuseArguments(
        tile.split > 1
            ? "depth has to give each block of the split 64 columns or the rest"
            : "a persistent kernel normalises depths of an even number of groups up to 32");
  const uint32_t stages = tile.stagesIn(a.sharedBytes);
  // Persistent kernels take any even number of blocks, up to two for each tile of a pair; those of
  // wide clusters at least one cluster.
  const auto grid = tile.grid(tokens, features, a.grid[0]);
  if (a.grid[0] == 0 || !std::ranges::equal(a.grid, grid) || a.block[0] != tile.threads() ||
      a.block[1] != 1 || a.block[2] != 1 || stages < 2)
    return refuseArguments("the launch is not that of the tile");
  const TensorView &x = a.reads[0], &w = a.reads[1], &bias = a.reads[2];
  const TensorView &residual = kNorm ? TensorView() : a.reads[3];
  const auto xStride = rowStrideOf(x, dtype, tokens, depth);
  const auto wStride = rowStrideOf(w, dtype, features, depth);
  const auto yStride = rowStrideOf(a.writes[0], dtype, tokens, features);
  const auto residualStride =
      residual.data ? rowStrideOf(residual, dtype, tokens, features) : std::optional<int64_t>(0);
  if (!xStride || !wStride || !yStride || !residualStride)
    return refuseArguments("x [tokens, depth], w [features, depth], residual and y [tokens, "
                           "features] need dense rows at multiples of 16 bytes");
  if (!isAbsentOrDenseOf(bias, dtype, features) || reinterpret_cast<uintptr_t>(bias.data) % 16 != 0)
    return refuseArguments("bias has to be dense, with one element for each feature");
  const TensorView &yMoments = a.writes[1];
  if (yMoments.data && !isMomentsOf(yMoments, tokens, features))
    return refuseArguments("moments have to be dense, two f32 for each 64 features of a token");
  if constexpr (kNorm)
    if (!isMomentsOf(a.reads[3], tokens, depth) ||
        reinterpret_cast<uintptr_t>(a.reads[3].data) % 16 != 0)
      return refuseArguments(
          "moments have to be dense, at a multiple of 16 bytes, two f32 for each "
          "64 columns of a token");
  ProductParameters<T> p{};
  CGC_ASSIGN_OR_RETURN(p.w,
                       tileMap(w.data, dtype, features, depth, *wStride, wBoxRows, a.onlyChecks));
  CGC_ASSIGN_OR_RETURN(p.x,
                       tileMap(x.data, dtype, tokens, depth, *xStride, xBoxRows, a.onlyChecks));
  p.bias = static_cast<const T *>(bias.data);
  p.residual = static_cast<const T *>(residual.data);
  p.y = static_cast<T *>(a.writes[0].data);
  p.residualStride = *residualStride;
  p.yStride = *yStride;
  p.tokens = int(tokens);
  p.features = int(features);
  p.depth = int(depth);
  p.stages = int(stages);
  p.xGroups = int(momentGroups(depth));
  p.yGroups = int(momentGroups(features));
  p.activation = Activation(kind);
  p.yMoments = static_cast<Moments *>(yMoments.data);
  p.wIsConstant = a.constantReads >> 1 & 1;
  p.biasIsConstant = !bias.data || (a.constantReads >> 2 & 1);
  if constexpr (kNorm) {
    p.xMoments = static_cast<const Moments *>(a.reads[3].data);
    p.eps = static_cast<float>(a.floats[0]);
    p.perColumn = 1.0f / static_cast<float>(depth);
  }
  return p;
}

} // namespace
} // namespace cgc

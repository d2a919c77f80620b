// product: the kernel. A producer warp copies tiles of weights and tokens to shared memory, a
// warpgroup for each 64 features multiplies them; the result is turned in shared memory and leaves
// token by token. For product.cu alone.
#pragma once

#include "runtime/kernels/activations.cuh"
#include "runtime/kernels/arguments.h"
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/hopper.cuh"
#include "runtime/kernels/product.h"
#include "runtime/kernels/tensor_map.h"
#include "runtime/kernels/wgmma.cuh"

namespace cgc {
namespace {

using namespace device;

template <class T> struct ProductParameters {
  CUtensorMap w, x;
  const T *bias, *residual; ///< Null where there is none.
  T *y;
  int64_t residualStride, yStride; ///< Between rows, in elements.
  int tokens, features, depth, stages;
  Activation activation;
  bool wIsConstant; ///< Nothing writes w while the plan runs.
};

/// Columns of a stage: rows of 128 bytes.
constexpr int kDepthTile = kProductDepth;

template <int kFeatures, int kTokens> struct ProductShape {
  static constexpr int kWeightBytes = kFeatures * kDepthTile * 2;
  static constexpr int kStageBytes = kWeightBytes + kTokens * kDepthTile * 2;
  static constexpr int kGroups = kFeatures / 64;
  static constexpr int kConsumers = kGroups * 128;
  /// Rows in which results are staged; the padding spreads them over the banks.
  static constexpr int kHalfPitch = 64 + 8, kFloatPitch = kFeatures + 4;
};

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

/// Registers of a thread with which `blocks` blocks fit on an SM: each of its four parts has 16384
/// for its share of the warps.
constexpr int maxRegisters(int threads, int blocks) {
  const int warpsOfPart = (threads / 32 * blocks + 3) / 4;
  return std::min(16384 / (32 * warpsOfPart) / 8 * 8, 232);
}

/// Eight results of one token from their sums: activation, residual, store.
template <class T, class Act>
__device__ void finish(const ProductParameters<T> &p, int64_t token, int feature,
                       const float (&sums)[8], Act activation) {
  Vector<T> out;
#pragma unroll
  for (int i = 0; i < 8; ++i)
    out.v[i] = fromFloat<T>(activation(sums[i]));
  if (p.residual) {
    const Vector<T> more = loadVector(p.residual + token * p.residualStride + feature);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      out.v[i] = fromFloat<T>(toFloat(out.v[i]) + toFloat(more.v[i]));
  }
  storeVector(p.y + token * p.yStride + feature, out);
}

template <class T, int kFeatures, int kTokens, int kSplit, int kBlocks>
__global__ void __maxnreg__(maxRegisters(kFeatures * 2 + 32, kBlocks))
    __cluster_dims__(kSplit, 1, 1) product(const __grid_constant__ ProductParameters<T> p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shape = ProductShape<kFeatures, kTokens>;
  extern __shared__ uint8_t dynamic[];
  uint8_t *const memory =
      dynamic + (1024 - sharedAddress(dynamic) % 1024) % 1024; // NOLINT: swizzled tiles
  __shared__ uint64_t full[kProductMaxStages], empty[kProductMaxStages];

  const int rank = kSplit > 1 ? int(clusterRank()) : 0;
  const int feature0 = int(blockIdx.x) / kSplit * kFeatures, token0 = int(blockIdx.y) * kTokens;
  const int blocks = (p.depth + kDepthTile - 1) / kDepthTile;
  const int first = blocks * rank / kSplit, count = blocks * (rank + 1) / kSplit - first;

  const int warp = threadIdx.x / 32;
  if (threadIdx.x == Shape::kConsumers) {
    prefetchMap(&p.w);
    prefetchMap(&p.x);
    for (int s = 0; s < p.stages; ++s) {
      initBarrier(&full[s], 1);
      initBarrier(&empty[s], Shape::kConsumers / 32);
    }
    fenceBarrierInit();
  }
  releaseSuccessor();
  __syncthreads();

  if (warp == Shape::kConsumers / 32) { // The producer.
    if (threadIdx.x == Shape::kConsumers) {
      const auto copyWeights = [&](int i, int stage) {
        arriveExpecting(&full[stage], Shape::kStageBytes);
        copyTile(memory + stage * Shape::kStageBytes, &p.w, (first + i) * kDepthTile, feature0,
                 &full[stage]);
      };
      const auto copyTokens = [&](int i, int stage) {
        copyTile(memory + stage * Shape::kStageBytes + Shape::kWeightBytes, &p.x,
                 (first + i) * kDepthTile, token0, &full[stage]);
      };
      const int early = count < p.stages ? count : p.stages;
      if (!p.wIsConstant)
        waitForPredecessor();
      for (int i = 0; i < early; ++i)
        copyWeights(i, i);
      waitForPredecessor();
      for (int i = 0; i < early; ++i)
        copyTokens(i, i);
      Ring ring{p.stages};
      for (int i = early; i < count; ++i, ring.next()) {
        waitBarrier(&empty[ring.stage], ring.phase);
        copyWeights(i, ring.stage);
        copyTokens(i, ring.stage);
      }
    }
    if constexpr (kSplit > 1) {
      __syncwarp();
      syncCluster();
      syncCluster();
    }
    return;
  }

  const int group = warp / 4, lane = threadIdx.x % 32;
  float sums[kTokens / 2];
  Ring ring{p.stages};
  int last = 0; // The stage of the iteration before.
  for (int i = 0; i < count; ++i, ring.next()) {
    const uint8_t *stage = memory + ring.stage * Shape::kStageBytes;
    waitBarrier(&full[ring.stage], ring.phase);
    const uint64_t w = tileDescriptor(stage + group * 64 * kDepthTile * 2);
    const uint64_t x = tileDescriptor(stage + Shape::kWeightBytes);
    wgmmaFence();
#pragma unroll
    for (int k = 0; k < kDepthTile / 16; ++k)
      Wgmma<T, kTokens>::run(sums, w + 2 * k, x + 2 * k, i + k > 0);
    wgmmaCommit();
    wgmmaWait<1>();
    if (i > 0 && lane == 0)
      arrive(&empty[last]);
    last = ring.stage;
  }
  wgmmaWait<0>();
  // The epilogue reads what other kernels wrote, too, and overwrites what they may have read.
  waitForPredecessor();
  // All tiles have been read: their memory is used again.
  syncThreads(1, Shape::kConsumers);

  const int row = group * 64 + warp % 4 * 16 + lane / 4; // And row + 8.
  if constexpr (kSplit == 1) {
    T *const staged = reinterpret_cast<T *>(memory) + group * kTokens * Shape::kHalfPitch;
    float bias[2] = {};
    if (p.bias)
      for (int h = 0; h < 2; ++h)
        if (const int feature = feature0 + row + h * 8; feature < p.features)
          bias[h] = toFloat(p.bias[feature]);
    // Matrices 0 and 1 are features 0-7 and 8-15 of one group of eight tokens, 2 and 3 of the next.
    const int matrix = lane / 8;
    T *const line =
        staged + (matrix / 2 * 8 + lane % 8) * Shape::kHalfPitch + warp % 4 * 16 + matrix % 2 * 8;
#pragma unroll
    for (int j = 0; j < kTokens / 8; j += 2) {
      const float *a = &sums[4 * j];
      const uint32_t low = packPair<T>(a[0] + bias[0], a[1] + bias[0]),
                     high = packPair<T>(a[2] + bias[1], a[3] + bias[1]);
      if (j + 1 < kTokens / 8)
        storeTransposed(line + j * 8 * Shape::kHalfPitch, low, high,
                        packPair<T>(a[4] + bias[0], a[5] + bias[0]),
                        packPair<T>(a[6] + bias[1], a[7] + bias[1]));
      else // An odd last group has nowhere to put a second half: it stores the first one twice.
        storeTransposed(staged + (j * 8 + lane % 8) * Shape::kHalfPitch + warp % 4 * 16 +
                            matrix % 2 * 8,
                        low, high, low, high);
    }
    syncThreads(2 + group, 128);

    const int vector = threadIdx.x % 8, feature = feature0 + group * 64 + vector * 8;
    if (feature >= p.features)
      return;
    withActivation(p.activation, [&](auto activation) {
#pragma unroll 4
      for (int t = threadIdx.x % 128 / 8; t < kTokens; t += 16) {
        if (token0 + t >= p.tokens)
          break;
        const Vector<T> in = loadVector(staged + t * Shape::kHalfPitch + vector * 8);
        float values[8];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          values[i] = toFloat(in.v[i]);
        finish(p, token0 + t, feature, values, activation);
      }
    });
  } else {
    // Each block puts its sums where the others can read them, then finishes its share of the tile.
    float *const staged = reinterpret_cast<float *>(memory);
#pragma unroll
    for (int j = 0; j < kTokens / 8; ++j) {
      const int token = j * 8 + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        staged[(token + i % 2) * Shape::kFloatPitch + row + i / 2 * 8] = sums[4 * j + i];
    }
    syncCluster();
    constexpr int kVectors = kFeatures / 8;
    withActivation(p.activation, [&](auto activation) {
      for (int item = rank * Shape::kConsumers + threadIdx.x; item < kTokens * kVectors;
           item += kSplit * Shape::kConsumers) {
        const int t = item / kVectors, feature = feature0 + item % kVectors * 8;
        if (token0 + t >= p.tokens || feature >= p.features)
          continue;
        const float *from = staged + t * Shape::kFloatPitch + item % kVectors * 8;
        float4 parts[kSplit][2];
#pragma unroll
        for (int r = 0; r < kSplit; ++r) {
          parts[r][0] = loadFromBlock(from, r);
          parts[r][1] = loadFromBlock(from + 4, r);
        }
        float values[8] = {};
        if (p.bias) {
          const Vector<T> bias = loadVector(p.bias + feature);
#pragma unroll
          for (int i = 0; i < 8; ++i)
            values[i] = toFloat(bias.v[i]);
        }
#pragma unroll
        for (int r = 0; r < kSplit; ++r)
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            values[4 * i] += parts[r][i].x;
            values[4 * i + 1] += parts[r][i].y;
            values[4 * i + 2] += parts[r][i].z;
            values[4 * i + 3] += parts[r][i].w;
          }
        // As the unsplit kernel and LibTorch do: the activation sees a rounded value.
#pragma unroll
        for (int i = 0; i < 8; ++i)
          values[i] = toFloat(fromFloat<T>(values[i]));
        finish(p, token0 + t, feature, values, activation);
      }
    });
    syncCluster(); // No block may end while another reads its sums.
  }
#endif
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

template <class T, int kFeatures, int kTokens, int kSplit>
Result<KernelParameters> bindProduct(const KernelArguments &a) {
  constexpr ProductTile tile{"", kFeatures, kTokens, kSplit};
  constexpr DType dtype = kDTypeOf<T>;
  const int64_t tokens = a.ints[0], features = a.ints[1], depth = a.ints[2], kind = a.ints[3];
  const int64_t most = int64_t(1) << 30;
  if (tokens < 1 || features < 8 || depth < 8 || tokens > most || features > most || depth > most ||
      features % 8 != 0 || depth % 8 != 0)
    return refuseArguments("features and depth have to be positive multiples of 8");
  if (kind < 0 || kind > int64_t(Activation::Tanh))
    return refuseArguments("there is no such activation");
  if (!tile.takes(depth))
    return refuseArguments("depth has to give each block of the split 64 columns or the rest");
  constexpr uint32_t stageBytes = ProductShape<kFeatures, kTokens>::kStageBytes;
  const uint32_t stages = std::min(a.sharedBytes / stageBytes, kProductMaxStages);
  if (a.grid[0] != tile.blocksX(features) || a.grid[1] != tile.blocksY(tokens) || a.grid[2] != 1 ||
      a.block[0] != tile.threads() || a.block[1] != 1 || a.block[2] != 1 || stages < 2 ||
      a.sharedBytes < tile.sharedBytes(stages))
    return refuseArguments("the launch is not that of the tile");
  const TensorView &x = a.reads[0], &w = a.reads[1], &bias = a.reads[2], &residual = a.reads[3];
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
  ProductParameters<T> p;
  CGC_ASSIGN_OR_RETURN(p.w, tileMap(w.data, dtype, features, depth, *wStride, kFeatures));
  CGC_ASSIGN_OR_RETURN(p.x, tileMap(x.data, dtype, tokens, depth, *xStride, kTokens));
  p.bias = static_cast<const T *>(bias.data);
  p.residual = static_cast<const T *>(residual.data);
  p.y = static_cast<T *>(a.writes[0].data);
  p.residualStride = *residualStride;
  p.yStride = *yStride;
  p.tokens = int(tokens);
  p.features = int(features);
  p.depth = int(depth);
  p.stages = int(stages);
  p.activation = Activation(kind);
  p.wIsConstant = a.constantReads >> 1 & 1;
  return KernelParameters(p);
}

} // namespace
} // namespace cgc

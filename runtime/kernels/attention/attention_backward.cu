// attention_backward_*: the gradients of q, k and v on tensor cores of sm_80 and later. A CTA
// computes one head, whose rows it keeps in shared memory. It recomputes P instead of reading it,
// and one warp accumulates each row of dQ, dK and dV, in a fixed order. Softmax in powers of two.
#include "runtime/kernels/attention/attention_backward.h"

#include "runtime/kernels/attention/heads.cuh"
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/pointwise/activations.cuh"
#include "runtime/kernels/sm80/async_copy.cuh"
#include "runtime/kernels/sm80/warp_mma.cuh"

namespace cgc {
namespace {

using namespace device;

/// Rows of a head in global memory.
template <class T> struct HeadRows {
  T *first;
  HeadStrides strides;
  __device__ T *row(int row) const {
    return first + blockIdx.y * strides.batch + blockIdx.x * strides.head + row * strides.row;
  }
};

template <class T> struct AttentionBackwardParameters {
  HeadRows<const T> dO, q, k, v;
  HeadRows<T> dQ, dK, dV;
  int queries, keys;
  float scale;
  bool causal; ///< Query i attends to keys 0 to i.
};

/// Rows of kColumns elements in shared memory.
template <class T, int kColumns> struct RowTile {
  static constexpr int kPitch = kColumns + 8;
  T *first;
  __device__ T *vector(int row, int index) const { return first + row * kPitch + index * 8; }
};

__device__ int paddedRows(int rows) {
  return (rows + 15) / 16 * 16;
}

/// All threads of the CTA copy a head's rows by cp.async. Rows behind the last are zeros.
template <int kColumns, class T>
__device__ void copyRows(const RowTile<T, kColumns> &to, const HeadRows<const T> &from, int rows) {
  constexpr int kVectors = kColumns / 8;
  for (int i = threadIdx.x; i < paddedRows(rows) * kVectors; i += blockDim.x) {
    const int row = i / kVectors, index = i % kVectors;
    copyAsync(to.vector(row, index), from.row(row < rows ? row : 0) + index * 8, row < rows);
  }
}

/// The A fragments of rows `first` to `first` + 15.
template <class T, int kColumns>
__device__ void loadRows(uint32_t (&a)[kColumns / 16][4], const RowTile<T, kColumns> &tile,
                         int first, int lane) {
#pragma unroll
  for (int d = 0; d < kColumns / 16; ++d)
    loadMatrices(a[d], tile.vector(first + lane % 16, 2 * d + lane / 16));
}

/// The products of the 16 rows `a` with rows `first` to `first` + 15 of `tile`: a 16x16 block.
template <class T, int kColumns>
__device__ void multiplyRows(float (&block)[2][4], const uint32_t (&a)[kColumns / 16][4],
                             const RowTile<T, kColumns> &tile, int first, int lane) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
    block[i / 4][i % 4] = 0;
#pragma unroll
  for (int d = 0; d < kColumns / 16; ++d) {
    uint32_t b[4];
    loadMatrices(b, tile.vector(first + lane / 16 * 8 + lane % 8, 2 * d + lane / 8 % 2));
    multiply<T>(block[0], a[d], b[0], b[1]);
    multiply<T>(block[1], a[d], b[2], b[3]);
  }
}

/// sums += block * rows `first` to `first` + 15 of `tile`, with the block rounded to T.
template <class T, int kColumns>
__device__ void addRows(float (&sums)[kColumns / 8][4], const float (&block)[2][4],
                        const RowTile<T, kColumns> &tile, int first, int lane) {
  const uint32_t a[4] = {
      packPair<T>(block[0][0], block[0][1]), packPair<T>(block[0][2], block[0][3]),
      packPair<T>(block[1][0], block[1][1]), packPair<T>(block[1][2], block[1][3])};
#pragma unroll
  for (int n = 0; n < kColumns / 16; ++n) {
    uint32_t b[4];
    loadTransposed(b, tile.vector(first + lane / 8 % 2 * 8 + lane % 8, 2 * n + lane / 16));
    multiply<T>(sums[2 * n], a, b[0], b[1]);
    multiply<T>(sums[2 * n + 1], a, b[2], b[3]);
  }
}

/// Stores the sums of rows `first` to `first` + 15, times `factor`, where there are such rows.
template <class T, int kColumns>
__device__ void storeRows(const HeadRows<T> &to, const float (&sums)[kColumns / 8][4], float factor,
                          int first, int rows, int lane) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = first + lane / 4 + h * 8;
    if (row >= rows)
      continue;
    T *const line = to.row(row) + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n)
      *reinterpret_cast<uint32_t *>(line + n * 8) =
          packPair<T>(sums[n][2 * h] * factor, sums[n][2 * h + 1] * factor);
  }
}

/// The sum over the four lanes that share a row.
__device__ float rowSum(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

/// What the softmax of each query needs: P = 2^(S - max) * inverse, with the max of baseOf().
/// `delta` is the sum of P * dP. Arrays over the queries, in shared memory.
struct SoftmaxRows {
  float *max, *inverse, *delta;
};

/// Computes the softmax and dQ of queries `first` to `first` + 15.
template <class T, int kColumns>
__device__ void computeDQ(const AttentionBackwardParameters<T> &p, const RowTile<T, kColumns> &q,
                          const RowTile<T, kColumns> &dO, const RowTile<T, kColumns> &k,
                          const RowTile<T, kColumns> &v, const SoftmaxRows &softmax, int first,
                          int lane) {
  const int row = first + lane / 4, column = lane % 4 * 2; // The lane's first ones.
  const int seen = p.causal ? min(p.keys, first + 16) : p.keys;
  const float scale = p.scale * kLog2e;
  uint32_t queries[kColumns / 16][4], dORows[kColumns / 16][4];
  loadRows<T, kColumns>(queries, q, first, lane);
  loadRows<T, kColumns>(dORows, dO, first, lane);

  // The scaled scores S, and dP, of keys `key` to `key` + 15.
  const auto products = [&](int key, float(&s)[2][4], float(&dP)[2][4]) {
    multiplyRows<T, kColumns>(s, queries, k, key, lane);
    multiplyRows<T, kColumns>(dP, dORows, v, key, lane);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = key + n * 8 + column + i % 2;
        const bool isSeen = at < p.keys && !(p.causal && at > row + i / 2 * 8);
        s[n][i] = isSeen ? s[n][i] * scale : -INFINITY;
      }
  };

  float rowMax[2] = {-INFINITY, -INFINITY}, sum[2] = {}, product[2] = {};
#pragma unroll 2
  for (int key = 0; key < seen; key += 16) {
    float s[2][4], dP[2][4];
    products(key, s, dP);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float highest =
          fmaxf(fmaxf(s[0][2 * h], s[0][2 * h + 1]), fmaxf(s[1][2 * h], s[1][2 * h + 1]));
      highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 1));
      highest = fmaxf(fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 2)), rowMax[h]);
      const float base = baseOf(highest), factor = fastExp2(rowMax[h] - base);
      rowMax[h] = highest;
      sum[h] *= factor;
      product[h] *= factor;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float unnormalized = fastExp2(s[i / 2][2 * h + i % 2] - base);
        sum[h] += unnormalized;
        product[h] += unnormalized * dP[i / 2][2 * h + i % 2];
      }
    }
  }
  float base[2], inverse[2], delta[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    base[h] = baseOf(rowMax[h]);
    inverse[h] = 1 / divisorOf(rowSum(sum[h]));
    delta[h] = rowSum(product[h]) * inverse[h];
    const int at = row + h * 8;
    if (lane % 4 == 0) {
      softmax.max[at] = base[h];
      softmax.inverse[at] = at < p.queries ? inverse[h] : 0; // Keys get nothing of other rows.
      softmax.delta[at] = delta[h];
    }
  }

  float sums[kColumns / 8][4] = {};
#pragma unroll 2
  for (int key = 0; key < seen; key += 16) {
    float s[2][4], dP[2][4];
    products(key, s, dP);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int h = i / 2;
        s[n][i] = fastExp2(s[n][i] - base[h]) * inverse[h] * (dP[n][i] - delta[h]); // dS
      }
    addRows<T, kColumns>(sums, s, k, key, lane);
  }
  storeRows<T, kColumns>(p.dQ, sums, p.scale, first, p.queries, lane);
}

/// Computes dK and dV of keys `first` to `first` + 15.
template <class T, int kColumns>
__device__ void computeDKAndDV(const AttentionBackwardParameters<T> &p,
                               const RowTile<T, kColumns> &q, const RowTile<T, kColumns> &dO,
                               const RowTile<T, kColumns> &k, const RowTile<T, kColumns> &v,
                               const SoftmaxRows &softmax, int first, int lane) {
  const int row = first + lane / 4, column = lane % 4 * 2; // The lane's first key and query.
  const float scale = p.scale * kLog2e;
  uint32_t keys[kColumns / 16][4], values[kColumns / 16][4];
  loadRows<T, kColumns>(keys, k, first, lane);
  loadRows<T, kColumns>(values, v, first, lane);
  float dKSums[kColumns / 8][4] = {}, dVSums[kColumns / 8][4] = {};
#pragma unroll 1
  for (int query = p.causal ? first : 0; query < p.queries; query += 16) {
    float s[2][4], dP[2][4];
    multiplyRows<T, kColumns>(s, keys, q, query, lane);
    multiplyRows<T, kColumns>(dP, values, dO, query, lane);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const int at = query + n * 8 + column;
      const float2 base = *reinterpret_cast<const float2 *>(softmax.max + at),
                   inverse = *reinterpret_cast<const float2 *>(softmax.inverse + at),
                   delta = *reinterpret_cast<const float2 *>(softmax.delta + at);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const bool isSecond = i % 2 == 1;
        const float exponent = s[n][i] * scale - (isSecond ? base.y : base.x);
        const bool isSeen = !(p.causal && row + i / 2 * 8 > at + i % 2);
        s[n][i] = isSeen ? fastExp2(exponent) * (isSecond ? inverse.y : inverse.x) : 0; // P
        dP[n][i] = s[n][i] * (dP[n][i] - (isSecond ? delta.y : delta.x));               // dS
      }
    }
    addRows<T, kColumns>(dVSums, s, dO, query, lane);
    addRows<T, kColumns>(dKSums, dP, q, query, lane);
  }
  storeRows<T, kColumns>(p.dK, dKSums, p.scale, first, p.keys, lane);
  storeRows<T, kColumns>(p.dV, dVSums, 1, first, p.keys, lane);
}

template <class T, int kColumns>
__global__ void __launch_bounds__(kBackwardMaxWarps * 32)
    attentionBackward(const __grid_constant__ AttentionBackwardParameters<T> p) {
  extern __shared__ uint4 memory[];
  griddepLaunchDependents();
  using Tile = RowTile<T, kColumns>;
  const int queryRows = paddedRows(p.queries), keyRows = paddedRows(p.keys);
  const Tile q{reinterpret_cast<T *>(memory)}, dO{q.first + queryRows * Tile::kPitch},
      k{dO.first + queryRows * Tile::kPitch}, v{k.first + keyRows * Tile::kPitch};
  float *const floats = reinterpret_cast<float *>(v.first + keyRows * Tile::kPitch);
  const SoftmaxRows softmax{floats, floats + queryRows, floats + 2 * queryRows};
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;

  griddepWait();
  copyRows<kColumns>(q, p.q, p.queries);
  copyRows<kColumns>(dO, p.dO, p.queries);
  copyRows<kColumns>(k, p.k, p.keys);
  copyRows<kColumns>(v, p.v, p.keys);
  commitCopies();
  waitForCopies<0>();
  __syncthreads();
  for (int first = warp * 16; first < p.queries; first += warps * 16)
    computeDQ<T, kColumns>(p, q, dO, k, v, softmax, first, lane);
  __syncthreads();
  for (int first = warp * 16; first < p.keys; first += warps * 16)
    computeDKAndDV<T, kColumns>(p, q, dO, k, v, softmax, first, lane);
}

template <class T, int kColumns>
Result<KernelParameters> bindAttentionBackward(const LaunchView &launch,
                                               const LaunchAddresses &at) {
  const AttentionBackwardLaunch l = *checkAttentionBackward(launch, kDTypeOf<T>, kColumns);
  const auto read = [&](size_t i, const HeadStrides &strides) {
    return HeadRows<const T>{static_cast<const T *>(at.reads[i]), strides};
  };
  const auto write = [&](size_t i, const HeadStrides &strides) {
    return HeadRows<T>{static_cast<T *>(at.writes[i]), strides};
  };
  return KernelParameters(AttentionBackwardParameters<T>{.dO = read(0, l.dO),
                                                         .q = read(1, l.q),
                                                         .k = read(2, l.k),
                                                         .v = read(3, l.v),
                                                         .dQ = write(0, l.dQ),
                                                         .dK = write(1, l.dK),
                                                         .dV = write(2, l.dV),
                                                         .queries = int(l.queries),
                                                         .keys = int(l.keys),
                                                         .scale = float(l.scale),
                                                         .causal = l.causal});
}

} // namespace

#define CGC_ATTENTION_BACKWARD(COLUMNS)                                                            \
  CGC_KERNEL_OF(attention_backward_f16_##COLUMNS, (attentionBackward<__half, COLUMNS>),            \
                (bindAttentionBackward<__half, COLUMNS>))                                          \
  CGC_KERNEL_OF(attention_backward_bf16_##COLUMNS, (attentionBackward<__nv_bfloat16, COLUMNS>),    \
                (bindAttentionBackward<__nv_bfloat16, COLUMNS>))
CGC_ATTENTION_BACKWARD(64)
CGC_ATTENTION_BACKWARD(80)
#undef CGC_ATTENTION_BACKWARD

} // namespace cgc

// attention_f32_*: softmax(scale q k^T + mask) v in f32, without tensor cores. A CTA computes 32
// queries of one head. Heads may be strided. The softmax is online, over chunks of keys. The values
// of a chunk are loaded while its scores are computed, the keys of the next chunk while its values
// are summed up.
#include "runtime/kernels/attention/attention_f32.h"

#include "runtime/kernels/attention/heads.cuh"
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/sm80/async_copy.cuh"

namespace cgc {
namespace {

using namespace device;

constexpr int kQueries = kAttentionF32Queries, kChunk = kAttentionF32Chunk,
              kThreads = kAttentionF32Threads;
/// A thread computes the scores of 4 queries and 4 keys; 16 neighboring threads share the queries.
constexpr int kLanes = 16, kRows = 4;
static_assert(kThreads == kQueries / kRows * kLanes && kChunk == 4 * kLanes);

using AttentionF32Parameters = HeadsParameters<float>;

/// Starts cp.async copies of `count` rows from row `first` on, as one group. Rows from `rows` on
/// and columns from `width` on become zeros.
template <int kColumns>
__device__ void copyRows(float *to, int pitch, const float *from, int64_t stride, int first,
                         int count, int rows, int width) {
  constexpr int kVectors = kColumns / 4;
  for (int i = threadIdx.x; i < count * kVectors; i += kThreads) {
    const int row = i / kVectors, column = i % kVectors * 4;
    const bool valid = first + row < rows && column < width;
    copyAsync(to + row * pitch + column, from + (valid ? (first + row) * stride + column : 0),
              valid);
  }
  commitCopies();
}

__device__ float4 loadFour(const float *from) {
  return *reinterpret_cast<const float4 *>(from);
}

/// The maximum of `value` over the 16 neighboring threads, in each of them.
__device__ float greatestOfLanes(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}
/// The sum of `value` over the 16 neighboring threads, in each of them.
__device__ float sumOfLanes(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

template <int kColumns>
__global__ void __launch_bounds__(kThreads)
    attentionF32(const __grid_constant__ AttentionF32Parameters p) {
  constexpr int kPitch = kColumns + 4, kWeightPitch = kChunk + 4;
  // A thread computes kParts times kPack adjacent columns of the result.
  constexpr int kPack = kColumns % 64 == 0   ? 4
                        : kColumns % 32 == 0 ? 2
                                             : 1,
                kParts = kColumns / kLanes / kPack;
  extern __shared__ float4 attentionF32Memory[];
  float *const queries = reinterpret_cast<float *>(attentionF32Memory),
               *const keys = queries + kQueries * kPitch, *const values = keys + kChunk * kPitch,
               *const weights = values + kChunk * kColumns;
  const int lane = threadIdx.x % kLanes, row = threadIdx.x / kLanes * kRows,
            first = blockIdx.x * kQueries;
  const int64_t head = blockIdx.y, batch = blockIdx.z;
  const float *const k = p.k + batch * p.kStrides.batch + head * p.kStrides.head,
                     *const v = p.v + batch * p.vStrides.batch + head * p.vStrides.head;
  // The end of the keys that any query of this CTA attends to.
  const int end = p.causal ? min(p.keys, first + kQueries) : p.keys;

  griddepLaunchDependents();
  griddepWait();
  copyRows<kColumns>(queries, kPitch, p.q + batch * p.qStrides.batch + head * p.qStrides.head,
                     p.qStrides.row, first, kQueries, p.queries, p.width);
  copyRows<kColumns>(keys, kPitch, k, p.kStrides.row, 0, kChunk, end, p.width);
  copyRows<kColumns>(values, kColumns, v, p.vStrides.row, 0, kChunk, end, p.width);

  float out[kRows][kParts][kPack] = {}, most[kRows], sum[kRows] = {};
#pragma unroll
  for (int i = 0; i < kRows; ++i)
    most[i] = -INFINITY;
  for (int chunk = 0; chunk < end; chunk += kChunk) {
    waitForCopies<1>(); // Queries and keys have arrived; values may be pending.
    __syncthreads();
    // Queries row to row + 3, keys lane, lane + 16, lane + 32 and lane + 48.
    float scores[kRows][4] = {};
#pragma unroll 4
    for (int d = 0; d < kColumns; d += 4) {
      float4 a[kRows], b[4];
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        a[i] = loadFour(queries + (row + i) * kPitch + d);
#pragma unroll
      for (int j = 0; j < 4; ++j)
        b[j] = loadFour(keys + (lane + j * kLanes) * kPitch + d);
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          scores[i][j] = fmaf(a[i].x, b[j].x, scores[i][j]);
          scores[i][j] = fmaf(a[i].y, b[j].y, scores[i][j]);
          scores[i][j] = fmaf(a[i].z, b[j].z, scores[i][j]);
          scores[i][j] = fmaf(a[i].w, b[j].w, scores[i][j]);
        }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int query = first + row + i;
      float greatest = most[i];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int key = chunk + lane + j * kLanes;
        float score = scores[i][j] * p.scale;
        if (query >= p.queries || key >= end || (p.causal && key > query))
          score = -INFINITY;
        else if (p.mask)
          score += maskOf(p, batch, head)[query * p.maskStrides.row + key];
        scores[i][j] = score;
        greatest = fmaxf(greatest, score);
      }
      greatest = greatestOfLanes(greatest);
      const float base = baseOf(greatest), factor = expf(most[i] - base);
      float part = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float weight = expf(scores[i][j] - base);
        part += weight;
        weights[(row + i) * kWeightPitch + lane + j * kLanes] = weight;
      }
      most[i] = greatest;
      sum[i] = sum[i] * factor + part;
#pragma unroll
      for (int c = 0; c < kParts; ++c)
#pragma unroll
        for (int e = 0; e < kPack; ++e)
          out[i][c][e] *= factor;
    }
    waitForCopies<0>();
    __syncthreads(); // Weights and values are in shared memory; the keys have been read.
    copyRows<kColumns>(keys, kPitch, k, p.kStrides.row, chunk + kChunk, kChunk, end, p.width);
#pragma unroll 2
    for (int key = 0; key < kChunk; key += 4) {
      float4 weight[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        weight[i] = loadFour(weights + (row + i) * kWeightPitch + key);
#pragma unroll
      for (int c = 0; c < kParts; ++c) {
        float value[4][kPack];
#pragma unroll
        for (int j = 0; j < 4; ++j)
          loadFloats(values + (key + j) * kColumns + (lane + c * kLanes) * kPack, value[j]);
#pragma unroll
        for (int i = 0; i < kRows; ++i)
#pragma unroll
          for (int e = 0; e < kPack; ++e) {
            out[i][c][e] = fmaf(weight[i].x, value[0][e], out[i][c][e]);
            out[i][c][e] = fmaf(weight[i].y, value[1][e], out[i][c][e]);
            out[i][c][e] = fmaf(weight[i].z, value[2][e], out[i][c][e]);
            out[i][c][e] = fmaf(weight[i].w, value[3][e], out[i][c][e]);
          }
      }
    }
    __syncthreads(); // Weights and values have been read.
    copyRows<kColumns>(values, kColumns, v, p.vStrides.row, chunk + kChunk, kChunk, end, p.width);
  }
  waitForCopies<0>();

  float *const to = p.out + batch * p.outStrides.batch + head * p.outStrides.head;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float divisor = divisorOf(sumOfLanes(sum[i]));
    if (first + row + i >= p.queries)
      continue;
#pragma unroll
    for (int c = 0; c < kParts; ++c) {
#pragma unroll
      for (int e = 0; e < kPack; ++e)
        out[i][c][e] /= divisor;
      if (const int column = (lane + c * kLanes) * kPack; column < p.width)
        storeFloats(to + (first + row + i) * p.outStrides.row + column, out[i][c]);
    }
  }
}

template <int kColumns>
Result<KernelParameters> bindAttentionF32(const LaunchView &launch, const LaunchAddresses &at) {
  return KernelParameters(headsParameters<float>(at, *checkAttentionF32(launch, kColumns)));
}

} // namespace

#define CGC_ATTENTION_F32(COLUMNS)                                                                 \
  CGC_KERNEL_OF(attention_f32_##COLUMNS, attentionF32<COLUMNS>, bindAttentionF32<COLUMNS>)
CGC_ATTENTION_F32(32)
CGC_ATTENTION_F32(48)
CGC_ATTENTION_F32(64)
CGC_ATTENTION_F32(80)
CGC_ATTENTION_F32(96)
CGC_ATTENTION_F32(112)
CGC_ATTENTION_F32(128)
#undef CGC_ATTENTION_F32

} // namespace cgc

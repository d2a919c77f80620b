// attention: softmax(scale q k^T + mask) v for one head and a slice of queries in each block, with
// the tensor cores of sm_80 and later. Reads strided heads, so packed projections need no copies,
// and writes token by token. Softmax runs over chunks of keys (Milakov and Gimelshein, 2018), in
// powers of two.
#include "runtime/kernels/attention.h"

#include "runtime/kernels/activations.cuh"
#include "runtime/kernels/arguments.h"
#include "runtime/kernels/device.cuh"

namespace cgc {
namespace {

using namespace device;

/// Strides of a tensor [batch, heads, rows, ...] in elements; columns are dense.
struct HeadStrides {
  int64_t batch, head, row;
};

template <class T> struct AttentionParameters {
  const T *q, *k, *v, *mask; ///< mask may be null; it is added to the scaled scores.
  T *out;
  HeadStrides qStrides, kStrides, vStrides, maskStrides, outStrides;
  int queries, keys;
  float scale; ///< Times log2(e).
  bool causal; ///< Query i sees keys 0 to i.
};

__device__ uint32_t address(const void *p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
/// Copies 16 bytes to shared memory, zeros if not `valid`.
__device__ void copyAsync(void *to, const void *from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to)), "l"(from),
               "r"(valid ? 16 : 0)
               : "memory");
}
__device__ void initBarrier(uint64_t *barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals));
}
/// Arrives when this thread's copies so far have landed.
__device__ void arriveWithCopies(uint64_t *barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(address(barrier))
               : "memory");
}
__device__ void waitBarrier(uint64_t *barrier, uint32_t parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n"
               "@!done bra again;\n"
               "}" ::"r"(address(barrier)),
               "r"(parity)
               : "memory");
}
__device__ void loadMatrices(uint32_t (&r)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address(row))
               : "memory");
}
__device__ void loadTransposed(uint32_t (&r)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address(row))
               : "memory");
}
/// d += a b for a 16x16 fragment a and a 16x8 fragment b.
template <class T>
__device__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (std::is_same_v<T, __half>)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <class T> __device__ uint32_t pack(float a, float b) {
  const T pair[2] = {fromFloat<T>(a), fromFloat<T>(b)};
  uint32_t bits;
  memcpy(&bits, pair, 4);
  return bits;
}
template <class T, int kWidth>
__global__ void __launch_bounds__(kAttentionMaxWarps * 32, kWidth <= 64 ? 2 : 1)
    attention(const __grid_constant__ AttentionParameters<T> p) {
  constexpr int kPitch = kWidth + 8, kChunk = kAttentionChunk;
  extern __shared__ uint4 memory[];
  __shared__ uint64_t full[kAttentionStages];
  releaseSuccessor();

  T *const shared = reinterpret_cast<T *>(memory);
  const int threads = blockDim.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int firstQuery = (blockIdx.x * (threads / 32) + warp) * kAttentionQueries;
  const int64_t head = blockIdx.y, batch = blockIdx.z;
  // The keys that any query of this block sees.
  const int lastQuery =
      min(int(blockIdx.x + 1) * (threads / 32) * int(kAttentionQueries), p.queries);
  const int keys = p.causal ? min(p.keys, lastQuery) : p.keys;
  const int chunks = (keys + kChunk - 1) / kChunk;
  const int stages = min((p.keys + kChunk - 1) / kChunk, int(kAttentionStages));

  if (threadIdx.x < kAttentionStages)
    initBarrier(&full[threadIdx.x], threads);
  __syncthreads();
  waitForPredecessor();

  const T *const k = p.k + batch * p.kStrides.batch + head * p.kStrides.head;
  const T *const v = p.v + batch * p.vStrides.batch + head * p.vStrides.head;
  const auto fetch = [&](int chunk) {
    T *const stage = shared + chunk % stages * kChunk * 2 * kPitch;
    constexpr int kVectors = kWidth / 8;
    const int rows = min(kChunk, (p.keys - chunk * kChunk + 15) / 16 * 16);
    for (int i = threadIdx.x; i < rows * kVectors; i += threads) {
      const int row = i / kVectors, column = i % kVectors * 8, key = chunk * kChunk + row;
      const bool valid = key < p.keys;
      copyAsync(stage + row * kPitch + column, k + (valid ? key * p.kStrides.row + column : 0),
                valid);
      copyAsync(stage + (kChunk + row) * kPitch + column,
                v + (valid ? key * p.vStrides.row + column : 0), valid);
    }
    arriveWithCopies(&full[chunk % stages]);
  };
  for (int chunk = 0; chunk < min(chunks, stages); ++chunk)
    fetch(chunk);

  // Fragments of the queries: rows lane / 4 and 8 more, columns lane % 4 * 2 and 8 more.
  const int row = firstQuery + lane / 4, column = lane % 4 * 2;
  uint32_t q[kWidth / 16][4];
  {
    const T *const from = p.q + batch * p.qStrides.batch + head * p.qStrides.head;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = row + i % 2 * 8;
      const T *const line = from + (r < p.queries ? r : 0) * p.qStrides.row + column + i / 2 * 8;
#pragma unroll
      for (int d = 0; d < kWidth / 16; ++d)
        q[d][i] = *reinterpret_cast<const uint32_t *>(line + d * 16);
    }
  }
  const T *const mask =
      p.mask ? p.mask + batch * p.maskStrides.batch + head * p.maskStrides.head : nullptr;

  float out[kWidth / 8][4] = {};
  float most[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  // Queries of this warp see nothing behind this.
  const int seen = p.causal ? min(keys, firstQuery + int(kAttentionQueries)) : keys;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    waitBarrier(&full[chunk % stages], chunk / stages & 1);
    const T *const stageK = shared + chunk % stages * kChunk * 2 * kPitch;
    const T *const stageV = stageK + kChunk * kPitch;
    const int left = seen - chunk * kChunk;
    if (firstQuery < p.queries && left > 0) {
      // Scores of 64 keys; groups of 16 that do not exist stay out.
      float scores[8][4];
#pragma unroll
      for (int g = 0; g < 4; ++g) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          scores[2 * g][i] = scores[2 * g + 1][i] = 0;
        if (g * 16 >= left)
          continue;
        const T *const line =
            stageK + (g * 16 + lane / 16 * 8 + lane % 8) * kPitch + lane / 8 % 2 * 8;
#pragma unroll
        for (int d = 0; d < kWidth / 16; ++d) {
          uint32_t b[4];
          loadMatrices(b, line + d * 16);
          multiply<T>(scores[2 * g], q[d], b[0], b[1]);
          multiply<T>(scores[2 * g + 1], q[d], b[2], b[3]);
        }
      }
      const bool edge =
          left < kChunk || p.mask || (p.causal && chunk * kChunk + kChunk > firstQuery);
#pragma unroll
      for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float score = scores[n][i] * p.scale;
          if (edge) {
            const int key = chunk * kChunk + n * 8 + column + i % 2, query = row + i / 2 * 8;
            if (key >= keys || (p.causal && key > query))
              score = -INFINITY;
            else if (mask && query < p.queries)
              score += toFloat(mask[query * p.maskStrides.row + key]) * 1.4426950408889634f;
          }
          scores[n][i] = score;
        }
      float factor[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float highest = most[h];
#pragma unroll
        for (int n = 0; n < 8; ++n)
          highest = fmaxf(highest, fmaxf(scores[n][2 * h], scores[n][2 * h + 1]));
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 1));
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 2));
        // Where all is masked so far, nothing is added.
        const float base = highest == -INFINITY ? 0 : highest;
        factor[h] = fastExp2(most[h] - base);
        most[h] = highest;
        sum[h] *= factor[h];
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float e = fastExp2(scores[n][2 * h + i] - base);
            scores[n][2 * h + i] = e;
            sum[h] += e;
          }
      }
#pragma unroll
      for (int n = 0; n < kWidth / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          out[n][i] *= factor[i / 2];
#pragma unroll
      for (int g = 0; g < 4; ++g) {
        if (g * 16 >= left)
          continue;
        const uint32_t weights[4] = {pack<T>(scores[2 * g][0], scores[2 * g][1]),
                                     pack<T>(scores[2 * g][2], scores[2 * g][3]),
                                     pack<T>(scores[2 * g + 1][0], scores[2 * g + 1][1]),
                                     pack<T>(scores[2 * g + 1][2], scores[2 * g + 1][3])};
        const T *const line =
            stageV + (g * 16 + lane / 8 % 2 * 8 + lane % 8) * kPitch + lane / 16 * 8;
#pragma unroll
        for (int n = 0; n < kWidth / 16; ++n) {
          uint32_t b[4];
          loadTransposed(b, line + n * 16);
          multiply<T>(out[2 * n], weights, b[0], b[1]);
          multiply<T>(out[2 * n + 1], weights, b[2], b[3]);
        }
      }
    }
    if (chunk + stages < chunks) { // The ring is too small for all keys: its stage is used again.
      __syncthreads();
      fetch(chunk + stages);
    }
  }

  T *const to = p.out + batch * p.outStrides.batch + head * p.outStrides.head;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float total = sum[h];
    total += __shfl_xor_sync(0xffffffffu, total, 1);
    total += __shfl_xor_sync(0xffffffffu, total, 2);
    const float scale = 1 / total;
    const int query = row + h * 8;
    if (query >= p.queries)
      continue;
#pragma unroll
    for (int n = 0; n < kWidth / 8; ++n)
      *reinterpret_cast<uint32_t *>(to + query * p.outStrides.row + n * 8 + column) =
          pack<T>(out[n][2 * h] * scale, out[n][2 * h + 1] * scale);
  }
}

/// Strides of a tensor [batch, heads, rows, columns] with dense columns, broadcast where a stride
/// is 0; nothing if it is none of these sizes or not made of 16-byte vectors.
std::optional<HeadStrides> stridesOf(const TensorView &t, DType dtype, int64_t batch, int64_t heads,
                                     int64_t rows, int64_t columns, int64_t vector = 8) {
  const int64_t sizes[] = {batch, heads, rows, columns};
  if (!t.data || t.dtype != dtype || !std::ranges::equal(t.sizes, sizes) ||
      reinterpret_cast<uintptr_t>(t.data) % (vector * 2) != 0)
    return std::nullopt;
  if (t.strides.empty())
    return HeadStrides{heads * rows * columns, rows * columns, columns};
  for (int i = 0; i < 3; ++i)
    if (sizes[i] > 1 && t.strides[i] % vector != 0)
      return std::nullopt;
  if (columns > 1 && t.strides[3] != 1)
    return std::nullopt;
  return HeadStrides{t.strides[0], t.strides[1], t.strides[2]};
}

template <class T, int kWidth> Result<KernelParameters> bindAttention(const KernelArguments &a) {
  constexpr DType dtype = kDTypeOf<T>;
  const int64_t batch = a.ints[0], heads = a.ints[1], queries = a.ints[2], keys = a.ints[3],
                causal = a.ints[4];
  const int64_t most = 1 << 24;
  if (batch < 1 || heads < 1 || queries < 1 || keys < 1 || batch > 65535 || heads > 65535 ||
      queries > most || keys > most || causal < 0 || causal > 1)
    return refuseArguments("batch, heads, queries and keys have to be positive and not too many");
  const int64_t warps = a.block[0] / 32, rows = warps * kAttentionQueries;
  if (warps < 1 || warps > kAttentionMaxWarps || a.block[0] % 32 != 0 || a.block[1] != 1 ||
      a.block[2] != 1 || a.grid[0] != (queries + rows - 1) / rows || a.grid[1] != heads ||
      a.grid[2] != batch || a.sharedBytes != attentionSharedBytes(keys, kWidth))
    return refuseArguments("the launch is not that of the sizes");
  const auto q = stridesOf(a.reads[0], dtype, batch, heads, queries, kWidth);
  const auto k = stridesOf(a.reads[1], dtype, batch, heads, keys, kWidth);
  const auto v = stridesOf(a.reads[2], dtype, batch, heads, keys, kWidth);
  const auto out = stridesOf(a.writes[0], dtype, batch, heads, queries, kWidth);
  const auto mask = a.reads[3].data
                        ? stridesOf(a.reads[3], dtype, batch, heads, queries, keys, /*vector=*/1)
                        : std::optional(HeadStrides{});
  if (!q || !k || !v || !out || !mask)
    return refuseArguments("q, k, v and out [batch, heads, rows, width] and mask [batch, heads, "
                           "queries, keys] need dense columns and rows at multiples of 16 bytes");
  return KernelParameters(AttentionParameters<T>{
      static_cast<const T *>(a.reads[0].data), static_cast<const T *>(a.reads[1].data),
      static_cast<const T *>(a.reads[2].data), static_cast<const T *>(a.reads[3].data),
      static_cast<T *>(a.writes[0].data), *q, *k, *v, *mask, *out, int(queries), int(keys),
      static_cast<float>(a.floats[0] * 1.4426950408889634), causal == 1});
}

} // namespace

#define CGC_ATTENTION(DTYPE, TYPE, WIDTH)                                                          \
  const void *attention_##DTYPE##_##WIDTH##Function() {                                            \
    return reinterpret_cast<const void *>(&attention<TYPE, WIDTH>);                                \
  }                                                                                                \
  Result<KernelParameters> attention_##DTYPE##_##WIDTH##Bind(const KernelArguments &a) {           \
    return bindAttention<TYPE, WIDTH>(a);                                                          \
  }
CGC_ATTENTION(f16, __half, 32)
CGC_ATTENTION(f16, __half, 64)
CGC_ATTENTION(f16, __half, 80)
CGC_ATTENTION(f16, __half, 96)
CGC_ATTENTION(f16, __half, 128)
CGC_ATTENTION(bf16, __nv_bfloat16, 32)
CGC_ATTENTION(bf16, __nv_bfloat16, 64)
CGC_ATTENTION(bf16, __nv_bfloat16, 80)
CGC_ATTENTION(bf16, __nv_bfloat16, 96)
CGC_ATTENTION(bf16, __nv_bfloat16, 128)
#undef CGC_ATTENTION

} // namespace cgc

// attention_*: softmax(scale q k^T + mask) v on tensor cores of sm_80 and later. A CTA computes a
// slice of the queries of one head. Heads may be strided, so packed projections need no copies. The
// softmax is online, over chunks of keys (Milakov and Gimelshein, 2018), in powers of two.
#include "runtime/kernels/attention/attention.h"

#include "runtime/kernels/attention/attention_parts.cuh"
#include "runtime/kernels/device/kernel_rows.h"
#include "runtime/kernels/device/tensor_map.h"
#include "runtime/kernels/sm90/hopper.cuh"

namespace cgc {
namespace {

/// TMA descriptors of keys and values.
struct HeadMaps {
  CUtensorMap k, v;
};
struct NoMaps {};

template <class T, bool kTensorCopies> struct AttentionParameters : HeadsParameters<T> {
  std::conditional_t<kTensorCopies, HeadMaps, NoMaps> maps;
  int splits; ///< Warps that share 16 queries; each computes every splits-th chunk of keys.
};

/// Upper limit of pipeline stages, for any number of keys.
template <int kColumns> constexpr int kMostStages = int(attentionStages(INT32_MAX, kColumns));
/// Whether heads of this kernel lack at most the last eight columns, because a narrower kernel
/// takes all narrower heads.
template <int kColumns>
constexpr bool kMissesEight = attentionColumns(kColumns - 16) == kColumns - 16;

/// Whether the mask of a chunk is loaded while its keys arrive. Heads of 64 columns lack registers.
template <int kColumns> constexpr bool kEarlyMask = kColumns != 64;

template <class T, int kColumns, bool kTensorCopies>
__global__ void __launch_bounds__(kAttentionMaxWarps * 32, kColumns <= 64 ? 2 : 1)
    attention(const __grid_constant__ AttentionParameters<T, kTensorCopies> p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  constexpr bool kHasCode = true;
#else
  constexpr bool kHasCode = !kTensorCopies;
#endif
  if constexpr (kHasCode) {
    using Tile = ChunkTile<T, kColumns, kTensorCopies>;
    constexpr int kChunk = kAttentionChunk, kStage = 2 * kChunk * Tile::kPitch;
    extern __shared__ uint4 memory[];
    __shared__ uint64_t full[kAttentionStages];
    griddepLaunchDependents();

    uint8_t *const bytes = reinterpret_cast<uint8_t *>(memory);
    T *const shared = reinterpret_cast<T *>(
        kTensorCopies ? bytes + (1024 - sharedAddress(bytes) % 1024) % 1024 : bytes);
    const int threads = blockDim.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int groups = threads / 32 / p.splits, group = warp % groups, split = warp / groups;
    const int firstQuery = (blockIdx.x * groups + group) * int(kAttentionQueries);
    const int head = blockIdx.y, batch = blockIdx.z;
    // Whether heads have this column. The kernel computes with zeros in the others.
    const auto exists = [&](int column) {
      return kTensorCopies || (kMissesEight<kColumns> && column < kColumns - 8) || column < p.width;
    };
    // The keys that any query of this CTA attends to.
    const int lastQuery = min(int(blockIdx.x + 1) * groups * int(kAttentionQueries), p.queries);
    const int keys = p.causal ? min(p.keys, lastQuery) : p.keys;
    const int chunks = (keys + kChunk - 1) / kChunk;
    const int stages = min((p.keys + kChunk - 1) / kChunk, kMostStages<kColumns>);

    if (threadIdx.x < kAttentionStages)
      initBarrier(&full[threadIdx.x], kTensorCopies ? 1 : threads);
    if constexpr (kTensorCopies)
      fenceBarrierInit();
    __syncthreads();
    griddepWait();

    const auto keysOf = [&](int chunk) { return Tile{shared + chunk % stages * kStage}; };
    const auto valuesOf = [&](int chunk) {
      return Tile{shared + chunk % stages * kStage + kChunk * Tile::kPitch};
    };
    const auto fetch = [&](int chunk) {
      uint64_t *const barrier = &full[chunk % stages];
      if constexpr (kTensorCopies) {
        if (threadIdx.x == 0) {
          arriveExpectTx(barrier, kStage * sizeof(T));
          tmaLoadHead(keysOf(chunk).first, &p.maps.k, chunk * kChunk, head, batch, barrier);
          tmaLoadHead(valuesOf(chunk).first, &p.maps.v, chunk * kChunk, head, batch, barrier);
        }
      } else {
        copyChunk<kColumns, T>(p, chunk, p.k + batch * p.kStrides.batch + head * p.kStrides.head,
                               p.v + batch * p.vStrides.batch + head * p.vStrides.head, keysOf,
                               valuesOf, threads, exists);
        arriveWithCopies(barrier);
      }
    };
    for (int chunk = 0; chunk < min(chunks, stages); ++chunk)
      fetch(chunk);

    const int row = firstQuery + lane / 4, column = lane % 4 * 2; // The lane's first ones.
    uint32_t q[kColumns / 16][4];
    loadQueries<T>(p, p.q + batch * p.qStrides.batch + head * p.qStrides.head, q, row, column,
                   exists);
    const T *const mask = p.mask ? maskOf(p, batch, head) : nullptr;
    // The weight of a score is 2^(scale (score - base)). addMask has scaled the scores already.
    const float scale = mask ? kLog2e : p.scale * kLog2e;

    float out[kColumns / 8][4] = {};
    float most[2] = {-INFINITY, -INFINITY}, sum[2] = {};
    uint32_t masks[8][2]; // Of a chunk.
    // The end of the keys that any query of this warp attends to.
    const int seen = p.causal ? min(keys, firstQuery + int(kAttentionQueries)) : keys;
    // Attends to one chunk, of which `left` keys remain for this warp. `all`: the chunk is full.
    // Otherwise, groups of 16 keys without a key are skipped.
    const auto attend = [&](auto all, int chunk, int left) {
      constexpr bool kAll = decltype(all)::value;
      const Tile k = keysOf(chunk), v = valuesOf(chunk);
      float scores[8][4];
      multiplyKeys<kAll, T>(scores, q, k, left, lane);
      if (mask) {
        if constexpr (!kEarlyMask<kColumns>)
          loadMask<T>(p, mask, masks, chunk * kChunk, keys, row, column);
        addMask<T>(p.scale, masks, scores);
      }
      if (!kAll || (p.causal && chunk * kChunk + kChunk > firstQuery))
        excludeKeys<T>(p, scores, chunk * kChunk, keys, row, column);
      float factor[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        // Short chains of dependent instructions, because a CTA has few warps to hide latency.
        const float highest = maximumOfRow(scores, h, most[h]);
        const float base = baseOf(highest);
        factor[h] = fastExp2((most[h] - base) * scale);
        most[h] = highest;
        if (mask) { // Subtracts before it scales: a mask of finfo.min times log2(e) is infinite.
#pragma unroll
          for (int n = 0; n < 8; ++n)
#pragma unroll
            for (int i = 0; i < 2; ++i)
              scores[n][2 * h + i] -= base;
        }
        const float scaledBase = mask ? 0 : base * scale;
        float part[4] = {};
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float e = fastExp2(fmaf(scores[n][2 * h + i], scale, -scaledBase));
            scores[n][2 * h + i] = e;
            part[n % 2 * 2 + i] += e;
          }
        sum[h] = sum[h] * factor[h] + ((part[0] + part[1]) + (part[2] + part[3]));
      }
      rescale(out, factor);
      addValues<kAll, T>(out, scores, v, left, lane);
    };
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int left = seen - chunk * kChunk;
      const bool attends = firstQuery < p.queries && left > 0 && chunk % p.splits == split;
      if (kEarlyMask<kColumns> && mask && attends)
        loadMask<T>(p, mask, masks, chunk * kChunk, keys, row, column);
      waitPhase(&full[chunk % stages], chunk / stages & 1);
      if (attends) {
        if (left >= kChunk)
          attend(std::true_type(), chunk, left);
        else
          attend(std::false_type(), chunk, left);
      }
      if (chunk + stages < chunks) { // The ring does not hold all keys: reuses the stage.
        __syncthreads();
        fetch(chunk + stages);
      }
    }

    if (p.splits > 1) { // The first warp of each group combines the partial results.
      constexpr int kPart = kColumns / 2 + 4; // Floats for each lane.
      float *const parts = reinterpret_cast<float *>(shared);
      __syncthreads(); // All keys and values have been read; `parts` overwrites them.
      if (split > 0)
        storePartial(parts + (warp - groups) * 32 * kPart + lane, out, most, sum);
      __syncthreads();
      if (split > 0)
        return;
      for (int other = 1; other < p.splits; ++other) {
        const float *const part = parts + ((other - 1) * groups + group) * 32 * kPart + lane;
        float factor[2], otherFactor[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const float theirs = part[(kColumns / 2 + h) * 32], highest = fmaxf(most[h], theirs);
          const float base = baseOf(highest);
          factor[h] = fastExp2((most[h] - base) * scale);
          otherFactor[h] = fastExp2((theirs - base) * scale);
          most[h] = highest;
          sum[h] = sum[h] * factor[h] + part[(kColumns / 2 + 2 + h) * 32] * otherFactor[h];
        }
#pragma unroll
        for (int n = 0; n < kColumns / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            out[n][i] = out[n][i] * factor[i / 2] + part[(4 * n + i) * 32] * otherFactor[i / 2];
      }
    }

    T *const to = p.out + batch * p.outStrides.batch + head * p.outStrides.head;
    storeResults<T>(p, to, out, sum, row, column, exists);
  }
}

template <class T, int kColumns, bool kTensorCopies>
Result<KernelParameters> bindAttention(const LaunchView &launch, const LaunchAddresses &at) {
  constexpr DType dtype = kDTypeOf<T>;
  const AttentionLaunch l = *checkAttention(launch, dtype, kColumns, kTensorCopies);
  AttentionParameters<T, kTensorCopies> p{headsParameters<T>(at, l.heads), {}, int(l.splits)};
  if constexpr (kTensorCopies) {
    CGC_ASSIGN_OR_RETURN(p.maps.k, tensorMap(at.reads[1], dtype, l.k));
    CGC_ASSIGN_OR_RETURN(p.maps.v, tensorMap(at.reads[2], dtype, l.v));
  }
  return KernelParameters(p);
}

} // namespace

#define CGC_ATTENTION(NAME, ...)                                                                   \
  CGC_KERNEL_OF(attention_f16_##NAME, (attention<__half, __VA_ARGS__>),                            \
                (bindAttention<__half, __VA_ARGS__>))                                              \
  CGC_KERNEL_OF(attention_bf16_##NAME, (attention<__nv_bfloat16, __VA_ARGS__>),                    \
                (bindAttention<__nv_bfloat16, __VA_ARGS__>))
CGC_ATTENTION(32, 32, false)
CGC_ATTENTION(48, 48, false)
CGC_ATTENTION(64, 64, false)
CGC_ATTENTION(80, 80, false)
CGC_ATTENTION(96, 96, false)
CGC_ATTENTION(112, 112, false)
CGC_ATTENTION(128, 128, false)
CGC_ATTENTION(64_hopper, 64, true)
#undef CGC_ATTENTION

} // namespace cgc

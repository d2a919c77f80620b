// attention_whole and attention_halves: softmax(scale q k^T) v with all keys of a head in shared
// memory: the scores of 64 queries stay in the registers of a warpgroup, for one half of the keys
// after the other, or of two warpgroups that have half of the keys each. For Hopper, heads of 64
// columns, and few keys. Reads strided heads, writes token by token.
#include "runtime/kernels/attention_whole.h"

#include "runtime/kernels/activations.cuh"
#include "runtime/kernels/arguments.h"
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/heads.h"
#include "runtime/kernels/hopper.cuh"
#include "runtime/kernels/tensor_map.h"
#include "runtime/kernels/wgmma.cuh"

namespace cgc {
namespace {

using namespace device;

template <class T> struct WholeParameters {
  CUtensorMap q, k, v;
  T *out;
  HeadStrides outStrides;
  int batch, heads, queries, keys;
  int tiles, stages;
  float scale; ///< Times log2(e).
  bool causal; ///< Query i sees keys 0 to i.
};

/// Boxes in which that many keys are fetched: one has up to 256 rows.
__host__ __device__ constexpr int boxesOf(int keys) {
  return keys > 256 ? 2 : 1;
}

constexpr int kRowBytes = 128, kTileBytes = int(kWholeQueries) * kRowBytes;

// Scores of a warpgroup: score(b, e) is that of key 8 b + lane % 4 * 2 + e % 2 for the query of the
// thread's row, or of the row 8 below where e > 1. `column` is lane % 4 * 2.

/// Makes the scores of keys from `keys` on -infinity. Only the last kMissing blocks may have some.
template <int kBlocks, int kMissing, class Score>
__device__ void hideMissing(Score score, int keys, int column) {
#pragma unroll
  for (int b = kBlocks - kMissing; b < kBlocks; ++b)
    if (b * 8 + 8 > keys) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (b * 8 + column + e % 2 >= keys)
          score(b, e) = -INFINITY;
    }
}

/// What a row's softmax has found in the keys so far: the largest score, times scale, and the sum
/// of 2^(scale score - base). The same in the four threads of a row.
struct Softmax {
  float base = -INFINITY, total = 0;
};

/// Makes scores 2^(scale score - base) and adds them to both rows' softmax; `factors` is what was
/// found before has to be multiplied by, as the base may be a larger one.
template <int kBlocks, class Score>
__device__ void exponentiate(Score score, float scale, Softmax (&softmax)[2], float (&factors)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float highest[4], sum[4] = {};
#pragma unroll
    for (int c = 0; c < 4; ++c)
      highest[c] = -INFINITY;
#pragma unroll
    for (int b = 0; b < kBlocks; ++b)
      highest[b % 4] = fmaxf(highest[b % 4], fmaxf(score(b, 2 * h), score(b, 2 * h + 1)));
    float most = fmaxf(fmaxf(highest[0], highest[1]), fmaxf(highest[2], highest[3]));
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
    const float base = fmaxf(softmax[h].base, most * scale);
    factors[h] = fastExp2(softmax[h].base - base);
#pragma unroll
    for (int b = 0; b < kBlocks; ++b)
#pragma unroll
      for (int e = 2 * h; e < 2 * h + 2; ++e) {
        score(b, e) = fastExp2(fmaf(score(b, e), scale, -base));
        sum[b % 2 * 2 + e % 2] += score(b, e);
      }
    float total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    total += __shfl_xor_sync(0xffffffffu, total, 1);
    total += __shfl_xor_sync(0xffffffffu, total, 2);
    softmax[h] = {base, fmaf(softmax[h].total, factors[h], total)};
  }
}

/// sums += weights times the rows of `values`, where the weights are scores; = unless `accumulate`.
template <class T, int kKeys, class Score>
__device__ void multiplyValues(Score score, const uint8_t *values, float (&sums)[32],
                               bool accumulate) {
  uint32_t weights[kKeys / 16][4];
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      weights[k][j] =
          packPair<T>(score(2 * k + j / 2, j % 2 * 2), score(2 * k + j / 2, j % 2 * 2 + 1));
  const uint64_t v = tileDescriptor(values);
  wgmmaFence();
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k)
    multiplyByRows<T>(sums, weights[k], v + k * (16 * kRowBytes / 16), accumulate || k > 0);
  wgmmaCommit();
  wgmmaWait<0>();
}

/// Stores the thread's part of a query's 64 results.
template <class T>
__device__ void storeQuery(T *to, const float (&sums)[32], int h, int column, float scale) {
#pragma unroll
  for (int b = 0; b < 8; ++b)
    *reinterpret_cast<uint32_t *>(to + b * 8 + column) =
        packPair<T>(sums[4 * b + 2 * h] * scale, sums[4 * b + 2 * h + 1] * scale);
}

/// Keys are multiplied in kParts of kWidth, a multiple of 16, one after the other. The second
/// begins kWidth before the end, and leaves out those of the first.
template <class T, int kKeys, int kParts, int kWidth>
__global__ void __launch_bounds__(kWholeMaxGroups * 128, 1)
    attentionWhole(const __grid_constant__ WholeParameters<T> p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kBlocks = kWidth / 8, kStep = kParts > 1 ? (kKeys - kWidth) / (kParts - 1) : kWidth;
  constexpr int kBoxes = boxesOf(kKeys), kBox = kKeys / kBoxes;
  constexpr int kMissing = kBlocks < kWholeMostMissing / 8 ? kBlocks : kWholeMostMissing / 8;
  static_assert(kWidth % 16 == 0 && kStep % 8 == 0 && (kParts - 1) * kStep + kWidth == kKeys);
  extern __shared__ uint8_t dynamic[];
  uint8_t *const memory = dynamic + (1024 - sharedAddress(dynamic) % 1024) % 1024;
  __shared__ uint64_t full[2], empty[2];
  releaseSuccessor();

  const int groups = blockDim.x / 128, group = threadIdx.x / 128;
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const int tilesOfHead = (p.queries + int(kWholeQueries) - 1) / int(kWholeQueries);
  const int slices = (tilesOfHead + p.tiles - 1) / p.tiles;
  const int items = p.batch * p.heads * slices;
  const int stageBytes = 2 * kKeys * kRowBytes + p.tiles * kTileBytes;
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) {
      initBarrier(&full[s], 1);
      initBarrier(&empty[s], blockDim.x / 32);
    }
    fenceBarrierInit();
  }
  __syncthreads();
  waitForPredecessor();

  const auto fetch = [&](int item, int stage) {
    const int slice = item % slices, head = item / slices % p.heads;
    const int batch = item / slices / p.heads;
    uint8_t *const to = memory + stage * stageBytes;
    uint64_t *const barrier = &full[stage];
    arriveExpecting(barrier, stageBytes);
    for (int t = 0; t < p.tiles; ++t)
      copyHeadTile(to + 2 * kKeys * kRowBytes + t * kTileBytes, &p.q,
                   (slice * p.tiles + t) * int(kWholeQueries), head, batch, barrier);
    for (int box = 0; box < kBoxes; ++box)
      copyHeadTile(to + box * kBox * kRowBytes, &p.k, box * kBox, head, batch, barrier);
    for (int box = 0; box < kBoxes; ++box)
      copyHeadTile(to + (kKeys + box * kBox) * kRowBytes, &p.v, box * kBox, head, batch, barrier);
  };
  if (threadIdx.x == 0 && int(blockIdx.x) < items)
    fetch(blockIdx.x, 0);

  for (int item = blockIdx.x, i = 0; item < items; item += gridDim.x, ++i) {
    const int stage = i % p.stages;
    if (const int next = item + gridDim.x; threadIdx.x == 0 && next < items) {
      if (i + 1 >= p.stages)
        waitBarrier(&empty[(i + 1) % p.stages], ((i + 1) / p.stages - 1) & 1);
      fetch(next, (i + 1) % p.stages);
    }
    __syncwarp();
    waitBarrier(&full[stage], i / p.stages & 1);
    const uint8_t *const from = memory + stage * stageBytes;
    const int slice = item % slices, head = item / slices % p.heads;
    const int batch = item / slices / p.heads;
    T *const out = p.out + batch * p.outStrides.batch + head * p.outStrides.head;
    // Which warpgroup has a tile more changes from item to item.
    for (int t = (group + i) % groups; t < p.tiles; t += groups) {
      const int firstQuery = (slice * p.tiles + t) * int(kWholeQueries);
      if (firstQuery >= p.queries)
        break;
      const int row = firstQuery + warp * 16 + lane / 4, column = lane % 4 * 2;
      const uint64_t q = tileDescriptor(from + 2 * kKeys * kRowBytes + t * kTileBytes);
      Softmax softmax[2];
      float sums[32];
#pragma unroll 1
      for (int part = 0; part < kParts; ++part) {
        const int firstKey = part * kStep;
        float scores[kWidth / 2];
        const auto score = [&](int b, int e) -> float & { return scores[4 * b + e]; };
        const uint64_t k = tileDescriptor(from + firstKey * kRowBytes);
        wgmmaFence();
#pragma unroll
        for (int d = 0; d < 4; ++d)
          Wgmma<T, kWidth>::run(scores, q + 2 * d, k + 2 * d, d > 0);
        wgmmaCommit();
        wgmmaWait<0>();

        if (firstQuery + warp * 16 < p.queries) { // Else the warp's rows are nobody's.
          if (part == kParts - 1)
            hideMissing<kBlocks, kMissing>(score, p.keys - firstKey, column);
          if (part > 0)
#pragma unroll
            for (int b = 0; b < (kWidth - kStep) / 8; ++b)
#pragma unroll
              for (int e = 0; e < 4; ++e)
                score(b, e) = -INFINITY;
          if (p.causal) {
#pragma unroll
            for (int b = 0; b < kBlocks; ++b)
#pragma unroll
              for (int e = 0; e < 4; ++e)
                if (firstKey + b * 8 + column + e % 2 > row + e / 2 * 8)
                  score(b, e) = -INFINITY;
          }
          float factors[2]; // Every query sees a key of the first part.
          exponentiate<kBlocks>(score, p.scale, softmax, factors);
          if (part > 0)
#pragma unroll
            for (int i = 0; i < 32; ++i)
              sums[i] *= factors[i / 2 % 2];
        }
        multiplyValues<T, kWidth>(score, from + (kKeys + firstKey) * kRowBytes, sums, part > 0);
      }
#pragma unroll
      for (int h = 0; h < 2; ++h)
        if (const int query = row + h * 8; query < p.queries)
          storeQuery(out + query * p.outStrides.row, sums, h, column, 1 / softmax[h].total);
    }
    __syncwarp();
    if (lane == 0)
      arrive(&empty[stage]);
  }
#endif
}

/// A block has one item: 64 queries of a head. Its second warpgroup hands what it has found for its
/// keys to the first.
template <class T>
__global__ void __launch_bounds__(256, 1)
    attentionHalves(const __grid_constant__ WholeParameters<T> p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kKeys = int(kHalfKeys), kBlocks = kKeys / 8, kHalfBytes = kKeys * kRowBytes;
  extern __shared__ uint8_t dynamic[];
  uint8_t *const memory = dynamic + (1024 - sharedAddress(dynamic) % 1024) % 1024;
  uint8_t *const keys = memory + kTileBytes, *const values = keys + 2 * kHalfBytes;
  __shared__ uint64_t haveQueries, haveKeys[2], haveValues[2];
  releaseSuccessor();

  const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const int tiles = (p.queries + int(kWholeQueries) - 1) / int(kWholeQueries);
  const int tile = int(blockIdx.x) % tiles, head = int(blockIdx.x) / tiles % p.heads;
  const int batch = int(blockIdx.x) / tiles / p.heads;
  if (threadIdx.x == 0) {
    prefetchMap(&p.q);
    prefetchMap(&p.k);
    prefetchMap(&p.v);
    initBarrier(&haveQueries, 1);
    for (int g = 0; g < 2; ++g) {
      initBarrier(&haveKeys[g], 1);
      initBarrier(&haveValues[g], 1);
    }
    fenceBarrierInit();
  }
  __syncthreads();
  waitForPredecessor();
  if (threadIdx.x == 0) {
    const auto fetch = [&](uint8_t *to, const CUtensorMap *map, int row, int bytes,
                           uint64_t *have) {
      arriveExpecting(have, bytes);
      copyHeadTile(to, map, row, head, batch, have);
    };
    fetch(memory, &p.q, tile * int(kWholeQueries), kTileBytes, &haveQueries);
    for (int g = 0; g < 2; ++g)
      fetch(keys + g * kHalfBytes, &p.k, g * kKeys, kHalfBytes, &haveKeys[g]);
    for (int g = 0; g < 2; ++g)
      fetch(values + g * kHalfBytes, &p.v, g * kKeys, kHalfBytes, &haveValues[g]);
  }
  __syncwarp();

  waitBarrier(&haveQueries, 0);
  waitBarrier(&haveKeys[group], 0);
  float scores[kKeys / 2];
  const auto score = [&](int b, int e) -> float & { return scores[4 * b + e]; };
  const uint64_t q = tileDescriptor(memory), k = tileDescriptor(keys + group * kHalfBytes);
  wgmmaFence();
#pragma unroll
  for (int d = 0; d < 4; ++d)
    Wgmma<T, kKeys>::run(scores, q + 2 * d, k + 2 * d, d > 0);
  wgmmaCommit();
  wgmmaWait<0>();
  const int column = lane % 4 * 2;
  if (group == 1)
    hideMissing<kBlocks, kBlocks>(score, p.keys - kKeys, column);
  Softmax softmax[2];
  float unused[2], sums[32];
  exponentiate<kBlocks>(score, p.scale, softmax, unused);
  waitBarrier(&haveValues[group], 0);
  multiplyValues<T, kKeys>(score, values + group * kHalfBytes, sums, false);

  // In the memory of the second half's keys, which that half has read.
  float *const handed = reinterpret_cast<float *>(keys + kHalfBytes) + threadIdx.x % 128;
  static_assert(kHalfBytes == (32 + 4) * 128 * sizeof(float));
  if (group == 1) {
#pragma unroll
    for (int i = 0; i < 32; ++i)
      handed[i * 128] = sums[i];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      handed[(32 + h) * 128] = softmax[h].base;
      handed[(34 + h) * 128] = softmax[h].total;
    }
  }
  __syncthreads();
  if (group == 1)
    return;
  float factors[2][2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float base = softmax[h].base, other = handed[(32 + h) * 128], most = fmaxf(base, other);
    factors[h][0] = fastExp2(base - most);
    factors[h][1] = fastExp2(other - most);
    softmax[h].total = softmax[h].total * factors[h][0] + handed[(34 + h) * 128] * factors[h][1];
  }
#pragma unroll
  for (int i = 0; i < 32; ++i)
    sums[i] = sums[i] * factors[i / 2 % 2][0] + handed[i * 128] * factors[i / 2 % 2][1];
  T *const out = p.out + batch * p.outStrides.batch + head * p.outStrides.head;
#pragma unroll
  for (int h = 0; h < 2; ++h)
    if (const int query = tile * int(kWholeQueries) + warp * 16 + lane / 4 + h * 8;
        query < p.queries)
      storeQuery(out + query * p.outStrides.row, sums, h, column, 1 / softmax[h].total);
#endif
}

/// The sizes that both kernels take from their first four ints, and what they have in common.
/// Keys and values are fetched in boxes of `keyBox` rows.
template <class T>
Result<WholeParameters<T>> parametersOf(const KernelArguments &a, int64_t keyBox) {
  constexpr DType dtype = kDTypeOf<T>;
  const int64_t batch = a.ints[0], heads = a.ints[1], queries = a.ints[2], keys = a.ints[3];
  if (!(a.floats[0] > 0))
    return refuseArguments("scale has to be positive");
  const auto q = headStridesOf(a.reads[0], dtype, batch, heads, queries, 64);
  const auto k = headStridesOf(a.reads[1], dtype, batch, heads, keys, 64);
  const auto v = headStridesOf(a.reads[2], dtype, batch, heads, keys, 64);
  const auto out = headStridesOf(a.writes[0], dtype, batch, heads, queries, 64);
  if (!q || !k || !v || !out)
    return refuseArguments("q, k, v and out [batch, heads, rows, 64] need dense columns and rows "
                           "at multiples of 16 bytes");
  const auto map = [&](const TensorView &t, const HeadStrides &s, int64_t rows, int64_t box) {
    return headsMap(t.data, dtype, {batch, heads, rows}, {s.batch, s.head, s.row}, uint32_t(box));
  };
  WholeParameters<T> p{};
  CGC_ASSIGN_OR_RETURN(p.q, map(a.reads[0], *q, queries, kWholeQueries));
  CGC_ASSIGN_OR_RETURN(p.k, map(a.reads[1], *k, keys, keyBox));
  CGC_ASSIGN_OR_RETURN(p.v, map(a.reads[2], *v, keys, keyBox));
  p.out = static_cast<T *>(a.writes[0].data);
  p.outStrides = *out;
  p.batch = int(batch);
  p.heads = int(heads);
  p.queries = int(queries);
  p.keys = int(keys);
  p.scale = static_cast<float>(a.floats[0] * kLog2e);
  return p;
}

/// Whether the first four ints are sizes that there may be.
bool hasSizes(const KernelArguments &a) {
  const int64_t batch = a.ints[0], heads = a.ints[1], queries = a.ints[2], keys = a.ints[3];
  return batch >= 1 && heads >= 1 && queries >= 1 && keys >= 1 && batch <= 65535 &&
         heads <= 65535 && queries <= 1 << 20;
}

template <class T, int kKeys> Result<KernelParameters> bindWhole(const KernelArguments &a) {
  const int64_t causal = a.ints[4];
  const WholeShape shape{a.ints[5], a.block[0] / 128, a.ints[6]};
  if (!hasSizes(a) || causal < 0 || causal > 1 || wholeKeys(a.ints[3]) != kKeys)
    return refuseArguments("batch, heads, queries and keys have to be positive, and the keys those "
                           "of the kernel");
  if (shape.tiles < 1 || shape.tiles > kWholeMaxTiles || shape.groups < 1 ||
      shape.groups > kWholeMaxGroups || shape.stages < 1 || shape.stages > 2)
    return refuseArguments("tiles, warpgroups or stages are out of range");
  const int64_t items = shape.items(a.ints[0] * a.ints[1], a.ints[2]);
  if (a.grid[0] < 1 || a.grid[0] > items || (shape.stages == 1 && a.grid[0] != items) ||
      a.grid[1] != 1 || a.grid[2] != 1 || a.block[0] != shape.groups * 128 || a.block[1] != 1 ||
      a.block[2] != 1 || a.sharedBytes != shape.sharedBytes(a.ints[3]))
    return refuseArguments("the launch is not that of the sizes");
  CGC_ASSIGN_OR_RETURN(WholeParameters<T> p, parametersOf<T>(a, kKeys / boxesOf(kKeys)));
  p.tiles = int(shape.tiles);
  p.stages = int(shape.stages);
  p.causal = causal == 1;
  return KernelParameters(p);
}

template <class T> Result<KernelParameters> bindHalves(const KernelArguments &a) {
  if (!hasSizes(a) || !fitsHalves(a.ints[3]))
    return refuseArguments("batch, heads, queries and keys have to be positive, and the keys those "
                           "of the kernel");
  const int64_t items = WholeShape{1, 2, 1}.items(a.ints[0] * a.ints[1], a.ints[2]);
  if (!hasLaunch(a, items, 256, kHalvesSharedBytes))
    return refuseArguments("the launch is not that of the sizes");
  CGC_ASSIGN_OR_RETURN(const WholeParameters<T> p, parametersOf<T>(a, kHalfKeys));
  return KernelParameters(p);
}

} // namespace

#define CGC_WHOLE(KEYS, PARTS, WIDTH)                                                              \
  CGC_KERNEL_OF(attention_whole_f16_##KEYS, (attentionWhole<__half, KEYS, PARTS, WIDTH>),          \
                (bindWhole<__half, KEYS>))                                                         \
  CGC_KERNEL_OF(attention_whole_bf16_##KEYS, (attentionWhole<__nv_bfloat16, KEYS, PARTS, WIDTH>),  \
                (bindWhole<__nv_bfloat16, KEYS>))
CGC_WHOLE(64, 1, 64)
CGC_WHOLE(80, 1, 80)
CGC_WHOLE(128, 2, 64)
CGC_WHOLE(208, 2, 112)
CGC_WHOLE(272, 3, 96)
#undef CGC_WHOLE
CGC_KERNEL_OF(attention_halves_f16, attentionHalves<__half>, bindHalves<__half>)
CGC_KERNEL_OF(attention_halves_bf16, attentionHalves<__nv_bfloat16>, bindHalves<__nv_bfloat16>)

} // namespace cgc

// attention_whole and attention_halves: softmax(scale q k^T) v with all keys of a head in shared
// memory: the scores of 64 queries stay in the registers of a warpgroup, one part of the keys after
// the other, or of two warpgroups that have half of the keys each; a last single query is shared by
// all warps. Online softmax (Milakov and Gimelshein, 2018), in powers of two. For Hopper, heads of
// 64 columns, and few keys. Reads strided heads, writes token by token.
#include "runtime/kernels/attention/attention_resident_kv.h"

#include "runtime/kernels/attention/attention_single.cuh"
#include "runtime/kernels/attention/heads.h"
#include "runtime/kernels/device.cuh"
#include "runtime/kernels/divider.h"
#include "runtime/kernels/kernel_checks.h"
#include "runtime/kernels/pointwise/activations.cuh"
#include "runtime/kernels/sm90/hopper.cuh"
#include "runtime/kernels/sm90/tensor_map.h"
#include "runtime/kernels/sm90/wgmma.cuh"

#include <type_traits>

// What only code for sm_90a calls is not unused.
#pragma nv_diag_suppress 177

namespace cgc {
namespace {

using namespace device;

template <class T> struct WholeParameters {
  CUtensorMap q, k, v, outTiles;
  T *out;
  const T *single; ///< The query of the first head that attendSingle works on; null: there is none.
  HeadStrides qStrides, outStrides;
  int queries, keys;
  int tiles, stages, items;
  Divider slices, heads; ///< Of a head; of an entry of the batch.
  float scale;           ///< Times log2(e).
  bool causal;           ///< Query i sees keys 0 to i.
};

/// What an item is: some tiles of queries, slice `slice`, of a head.
struct Place {
  int slice, head, batch;
};
template <class T> __device__ Place placeOf(const WholeParameters<T> &p, int item) {
  const uint32_t row = p.slices.quotient(uint32_t(item)), batch = p.heads.quotient(row);
  return {item - int(row * p.slices.divisor), int(row - batch * p.heads.divisor), int(batch)};
}

/// Boxes in which that many keys are fetched: one has up to 256 rows.
__host__ __device__ constexpr int boxesOf(int keys) {
  return keys > 256 ? 2 : 1;
}

/// Queries of a tile that a warp has.
constexpr int kWarpQueries = int(kWholeQueries) / 4;

constexpr int kRowBytes = 128;
constexpr int kTileBytes = int(kWholeQueries) * kRowBytes;

// Scores of a warpgroup: score(b, e) is that of key 8 b + lane % 4 * 2 + e % 2 for the query of the
// thread's row, or of the row 8 below where e > 1. `column` is lane % 4 * 2.

/// Makes the scores of keys from `keys` on -infinity. Only those from kFull on may be missing.
template <int kBlocks, int kFull, class Score>
__device__ void hideMissing(Score score, int keys, int column) {
#pragma unroll
  for (int b = kFull / 8; b < kBlocks; ++b)
    if (b * 8 + 8 > keys) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (b * 8 + column + e % 2 >= keys)
          score(b, e) = -INFINITY;
    }
}

/// A row's weights are 2^(scale score - base). The base is about the largest scale score so far: it
/// follows when that is more than this above it, so that weights stay far inside what 16 bits hold
/// and sums are seldom multiplied anew.
constexpr float kBaseSlack = 8;

/// Makes scores weights, by the bases of both rows. Whether a base of the warp is another one than
/// before: then `factors` is what the sums so far have to be multiplied by.
template <int kBlocks, class Score>
__device__ bool exponentiate(Score score, float scale, float (&bases)[2], float (&factors)[2]) {
  float most[2];
  bool exceeds = false;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float highest[4];
#pragma unroll
    for (int c = 0; c < 4; ++c)
      highest[c] = -INFINITY;
#pragma unroll
    for (int b = 0; b < kBlocks; ++b)
      highest[b % 4] = fmaxf(highest[b % 4], fmaxf(score(b, 2 * h), score(b, 2 * h + 1)));
    most[h] = fmaxf(fmaxf(highest[0], highest[1]), fmaxf(highest[2], highest[3])) * scale;
    exceeds |= most[h] > bases[h] + kBaseSlack;
  }
  exceeds = __any_sync(0xffffffffu, exceeds);
  if (exceeds) {
#pragma unroll
    for (int h = 0; h < 2; ++h) { // The four threads of a row have the same base.
      most[h] = fmaxf(most[h], __shfl_xor_sync(0xffffffffu, most[h], 1));
      most[h] = fmaxf(most[h], __shfl_xor_sync(0xffffffffu, most[h], 2));
      const float base = fmaxf(bases[h], most[h]);
      factors[h] = fastExp2(bases[h] - base);
      bases[h] = base;
    }
  }
#pragma unroll
  for (int b = 0; b < kBlocks; ++b)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      score(b, e) = fastExp2(fmaf(score(b, e), scale, -bases[e / 2]));
  return exceeds;
}

/// What the weights of a warpgroup's queries sum up: rows of values, and 1.
struct Sums {
  float values[32], totals[4];
  __device__ void multiply(const float (&factors)[2]) {
#pragma unroll
    for (int i = 0; i < 32; ++i)
      values[i] *= factors[i / 2 % 2];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      totals[i] *= factors[i / 2];
  }
  __device__ float total(int h) const { return totals[2 * h]; }
};

/// Adds weights times the rows of the tile `values` to `sums`, or puts them there unless
/// `accumulate`. By products under way: `weights` is what they read.
template <class T, int kKeys, class Score>
__device__ void addValues(Score score, uint64_t values, const void *ones, Sums &sums,
                          uint32_t (&weights)[kKeys / 16][4], bool accumulate) {
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      weights[k][j] =
          packPair<T>(score(2 * k + j / 2, j % 2 * 2), score(2 * k + j / 2, j % 2 * 2 + 1));
  wgmmaFence();
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
    multiplyByRows<T>(sums.values, weights[k], descriptorAt(values, k * 16 * kRowBytes),
                      accumulate || k > 0);
    multiplyByEqual<T>(sums.totals, weights[k], ones, accumulate || k > 0);
  }
  wgmmaCommit();
}

/// Lets the block's first threads write the tile of ones; fenced for products.
template <class T> __device__ void writeOnes(uint32_t (&ones)[64]) {
  if (threadIdx.x < 64) {
    ones[threadIdx.x] = packPair<T>(1, 1);
    fenceShared();
  }
}

/// Stores the thread's part of a query's 64 results.
template <class T>
__device__ void storeQuery(T *to, const float (&sums)[32], int h, int column, float scale) {
#pragma unroll
  for (int b = 0; b < 8; ++b)
    *reinterpret_cast<uint32_t *>(to + b * 8 + column) =
        packPair<T>(sums[4 * b + 2 * h] * scale, sums[4 * b + 2 * h + 1] * scale);
}

/// Counts this warp among those that have left a stage; how many have before.
__device__ uint32_t leave(uint32_t *leavers) {
  uint32_t before;
  asm volatile("atom.acq_rel.cta.shared::cta.inc.u32 %0, [%1], 0xffffffff;"
               : "=r"(before)
               : "r"(sharedAddress(leavers))
               : "memory");
  return before;
}

/// Calls f with 0, 1 to kCount - 1.
template <int kCount, int kFirst = 0, class F> __device__ void forEach(F f) {
  if constexpr (kFirst < kCount) {
    f(std::integral_constant<int, kFirst>());
    forEach<kCount, kFirst + 1>(f);
  }
}

/// The keys that part `part` has.
template <int kKeys, int kPart> __device__ constexpr int widthOf(int part) {
  return part * kPart + kPart < kKeys ? kPart : kKeys - part * kPart;
}

/// Keys are multiplied in parts of 64, the last one of the rest; up to 80 at once. While the
/// weights of one part are found, the scores of the next are multiplied.
template <class T, int kKeys>
__global__ void __launch_bounds__(kWholeMaxGroups * 128, 1)
    attentionWhole(const __grid_constant__ WholeParameters<T> p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kPart = kKeys <= 80 ? kKeys : 64, kParts = (kKeys + kPart - 1) / kPart;
  constexpr int kBoxes = boxesOf(kKeys), kBox = kKeys / kBoxes;
  static_assert(kKeys % 16 == 0);
  extern __shared__ uint8_t dynamic[];
  uint8_t *const memory = dynamic + (1024 - sharedAddress(dynamic) % 1024) % 1024;
  // Of each stage: its queries and first box of keys have come, the other box, its values; what
  // warps have found for the single query of its last item has been put together.
  __shared__ uint64_t haveKeys[2], haveMoreKeys[2], haveValues[2], singleIsRead[2];
  // Of the item of each stage; how many warps have left it.
  __shared__ Place places[2];
  __shared__ uint32_t leavers[2];
  __shared__ alignas(16) uint32_t ones[64];
  releaseSuccessor();

  const int groups = blockDim.x / 128, group = threadIdx.x / 128;
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const int tilesBytes = p.tiles * kTileBytes;
  const int stageBytes =
      2 * kKeys * kRowBytes + tilesBytes + (p.single ? int(kWholeSingleBytes) : 0);

  const auto fetch = [&](int item, int stage) {
    const auto [slice, head, batch] = places[stage] = placeOf(p, item);
    leavers[stage] = 0;
    uint8_t *const to = memory + stage * stageBytes, *const tiles = to + 2 * kKeys * kRowBytes;
    arriveExpecting(&haveKeys[stage], kBox * kRowBytes + tilesBytes + (p.single ? kRowBytes : 0));
    copyHeadTile(tiles, &p.q, slice * p.tiles * int(kWholeQueries), head, batch, &haveKeys[stage]);
    copyHeadTile(to, &p.k, 0, head, batch, &haveKeys[stage]);
    if constexpr (kBoxes > 1) {
      arriveExpecting(&haveMoreKeys[stage], (kKeys - kBox) * kRowBytes);
      copyHeadTile(to + kBox * kRowBytes, &p.k, kBox, head, batch, &haveMoreKeys[stage]);
    }
    if (p.single)
      copyBytes(tiles + tilesBytes, p.single + batch * p.qStrides.batch + head * p.qStrides.head,
                kRowBytes, &haveKeys[stage]);
    arriveExpecting(&haveValues[stage], kKeys * kRowBytes);
    for (int box = 0; box < kBoxes; ++box)
      copyHeadTile(to + (kKeys + box * kBox) * kRowBytes, &p.v, box * kBox, head, batch,
                   &haveValues[stage]);
  };
  if (threadIdx.x == 0) {
    prefetchMap(&p.q);
    prefetchMap(&p.k);
    prefetchMap(&p.v);
    prefetchMap(&p.outTiles);
    for (int s = 0; s < 2; ++s) {
      initBarrier(&haveKeys[s], 1);
      initBarrier(&haveMoreKeys[s], 1);
      initBarrier(&haveValues[s], 1);
      initBarrier(&singleIsRead[s], 1);
    }
    fenceBarrierInit();
    waitForPredecessor();
#pragma unroll 1
    for (int s = 0; s < p.stages; ++s)
      if (const int item = blockIdx.x + s * gridDim.x; item < p.items)
        fetch(item, s);
  }
  writeOnes<T>(ones);
  __syncthreads();
  waitForPredecessor();

  const auto waitForMoreKeys = [&](int stage, uint32_t phase) {
    if constexpr (kBoxes > 1)
      waitBarrier(&haveMoreKeys[stage], phase);
  };
  int stage = 0;
  uint32_t phase = 0;
  int turn = 0; // Which warpgroup has a tile more changes from item to item.
#pragma unroll 1
  for (int item = blockIdx.x; item < p.items; item += gridDim.x) {
    waitBarrier(&haveKeys[stage], phase);
    const Place place = places[stage];
    uint8_t *const from = memory + stage * stageBytes;
    const uint64_t keys = sameInWarp(tileDescriptor(from));
    const uint64_t values = descriptorAt(keys, kKeys * kRowBytes);
    uint8_t *const tiles = from + 2 * kKeys * kRowBytes;
    const int turned = group + turn < groups ? group + turn : group + turn - groups;
#pragma unroll 1
    for (int t = turned; t < p.tiles; t += groups) {
      const int firstQuery = (place.slice * p.tiles + t) * int(kWholeQueries);
      if (firstQuery >= p.queries)
        break;
      uint8_t *const tile = tiles + t * kTileBytes;
      const int warpQuery = firstQuery + warp * kWarpQueries;
      const int row = warpQuery + lane / 4, column = lane % 4 * 2;
      const uint64_t q = sameInWarp(tileDescriptor(tile));
      // Of a part and of the next in turn; a last part has fewer, in the first registers.
      float scores[kParts > 1 ? 2 : 1][kPart / 2], bases[2] = {-INFINITY, -INFINITY};
      Sums sums;
      uint32_t weights[kPart / 16][4];
      const auto startScores = [&](auto part) {
        constexpr int kIndex = decltype(part)::value, kWidth = widthOf<kKeys, kPart>(kIndex);
        if constexpr (kIndex * kPart <= kBox && kIndex * kPart + kWidth > kBox)
          waitForMoreKeys(stage, phase);
        wgmmaFence();
#pragma unroll
        for (int d = 0; d < 4; ++d)
          Wgmma<T, kWidth>::run(reinterpret_cast<float(&)[kWidth / 2]>(scores[kIndex % 2]),
                                descriptorAt(q, d * 32),
                                descriptorAt(keys, kIndex * kPart * kRowBytes + d * 32), d > 0);
        wgmmaCommit();
      };
      startScores(std::integral_constant<int, 0>());
      forEach<kParts>([&](auto part) {
        constexpr int kIndex = decltype(part)::value, kWidth = widthOf<kKeys, kPart>(kIndex);
        constexpr int kFirst = kIndex * kPart, kBlocks = kWidth / 8;
        wgmmaWait<0>();
        if constexpr (kIndex + 1 < kParts)
          startScores(std::integral_constant<int, kIndex + 1>());
        const auto score = [&](int b, int e) -> float & { return scores[kIndex % 2][4 * b + e]; };
        constexpr int kFull = kKeys - int(kWholeMostMissing) - kFirst;
        hideMissing<kBlocks, (kFull > 0 ? kFull : 0)>(score, p.keys - kFirst, column);
        if (p.causal) {
#pragma unroll
          for (int b = 0; b < kBlocks; ++b)
#pragma unroll
            for (int e = 0; e < 4; ++e)
              if (kFirst + b * 8 + column + e % 2 > row + e / 2 * 8)
                score(b, e) = -INFINITY;
        }
        float factors[2]; // Every query sees a key of the first part.
        if (exponentiate<kBlocks>(score, p.scale, bases, factors) && kIndex > 0)
          sums.multiply(factors);
        if constexpr (kIndex == 0)
          waitBarrier(&haveValues[stage], phase);
        addValues<T, kWidth>(score, descriptorAt(values, kFirst * kRowBytes), ones, sums,
                             reinterpret_cast<uint32_t(&)[kWidth / 16][4]>(weights), kIndex > 0);
      });
      wgmmaWait<0>();
      // The results take the place of the queries, which all warps of the group have read.
      syncThreads(1 + group, 128);
      uint8_t *const rows = tile + warp * kWarpQueries * kRowBytes;
      const float scales[2] = {__fdividef(1, sums.total(0)), __fdividef(1, sums.total(1))};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        uint32_t pairs[4]; // Two groups of 8 rows, twice 8 columns.
#pragma unroll
        for (int m = 0; m < 4; ++m) {
          const float *const two = sums.values + 4 * (2 * j + m / 2) + 2 * (m % 2);
          pairs[m] = packPair<T>(two[0] * scales[m % 2], two[1] * scales[m % 2]);
        }
        storeMatrices(swizzledVector(rows, lane % 16, 2 * j + lane / 16), pairs[0], pairs[1],
                      pairs[2], pairs[3]);
      }
      fenceShared();
      __syncwarp();
      if (lane == 0 && warpQuery < p.queries)
        storeHeadTile(&p.outTiles, warpQuery, place.head, place.batch, rows);
    }
    auto &single = *reinterpret_cast<SingleMemory *>(tiles + tilesBytes);
    if (p.single) {
      waitForMoreKeys(stage, phase);
      waitBarrier(&haveValues[stage], phase);
      // The phase before is that of the stage's item before.
      attendSingle<T>(turned * 4 + warp, p.causal ? min(p.keys, p.queries) : p.keys, p.scale, from,
                      from + kKeys * kRowBytes, single, &singleIsRead[stage], phase ^ 1);
    }
    // The last warp to leave a stage fetches what comes there next: over the memory that results
    // are stored from, too.
    if (lane == 0)
      waitStoresRead();
    __syncwarp(); // What all lanes have found comes before leave(), which publishes it.
    const uint32_t before = lane == 0 ? leave(&leavers[stage]) : 0;
    if (__shfl_sync(0xffffffffu, before, 0) == blockDim.x / 32 - 1) {
      T *const to = p.out + place.batch * p.outStrides.batch + place.head * p.outStrides.head +
                    (p.queries - 1) * p.outStrides.row;
      const int next = item + p.stages * int(gridDim.x);
      __syncwarp(); // What other warps have found comes after leave().
      if (lane == 0 && next < p.items)
        fetch(next, stage);
      __syncwarp();
      if (p.single) {
        finishSingle(single, to);
        __syncwarp();
        if (lane == 0)
          arrive(&singleIsRead[stage]);
      }
    }
    if (++stage == p.stages) {
      stage = 0;
      phase ^= 1;
    }
    if (++turn == groups)
      turn = 0;
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
  __shared__ alignas(16) uint32_t ones[64];
  releaseSuccessor();

  const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const auto [tile, head, batch] = placeOf(p, int(blockIdx.x));
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
  writeOnes<T>(ones);
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
    hideMissing<kBlocks, 0>(score, p.keys - kKeys, column);
  float bases[2] = {-INFINITY, -INFINITY}, unused[2];
  Sums sums;
  uint32_t weights[kKeys / 16][4];
  exponentiate<kBlocks>(score, p.scale, bases, unused);
  waitBarrier(&haveValues[group], 0);
  addValues<T, kKeys>(score, tileDescriptor(values + group * kHalfBytes), ones, sums, weights,
                      false);
  wgmmaWait<0>();

  // In the memory of the second half's keys, which that half has read.
  float *const handed = reinterpret_cast<float *>(keys + kHalfBytes) + threadIdx.x % 128;
  static_assert(kHalfBytes == (32 + 4) * 128 * sizeof(float));
  if (group == 1) {
    syncThreads(1, 128); // All its warps have read the keys.
#pragma unroll
    for (int i = 0; i < 32; ++i)
      handed[i * 128] = sums.values[i];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      handed[(32 + h) * 128] = bases[h];
      handed[(34 + h) * 128] = sums.total(h);
    }
  }
  __syncthreads();
  if (group == 1)
    return;
  float factors[2][2], totals[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float other = handed[(32 + h) * 128], most = fmaxf(bases[h], other);
    factors[h][0] = fastExp2(bases[h] - most);
    factors[h][1] = fastExp2(other - most);
    totals[h] = sums.total(h) * factors[h][0] + handed[(34 + h) * 128] * factors[h][1];
  }
#pragma unroll
  for (int i = 0; i < 32; ++i)
    sums.values[i] =
        sums.values[i] * factors[i / 2 % 2][0] + handed[i * 128] * factors[i / 2 % 2][1];
  T *const out = p.out + batch * p.outStrides.batch + head * p.outStrides.head;
#pragma unroll
  for (int h = 0; h < 2; ++h)
    if (const int query = tile * int(kWholeQueries) + warp * 16 + lane / 4 + h * 8;
        query < p.queries)
      storeQuery(out + query * p.outStrides.row, sums.values, h, column, 1 / totals[h]);
#endif
}

/// The sizes that both kernels take from their first four ints, and what they have in common.
/// Queries are fetched in boxes of `queryBox` rows, keys and values in boxes of `keyBox`.
template <class T>
Result<WholeParameters<T>> parametersOf(const KernelArguments &a, int64_t queryBox,
                                        int64_t keyBox) {
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
    return headsMap(t.data, dtype, {batch, heads, rows}, {s.batch, s.head, s.row}, uint32_t(box),
                    a.onlyChecks);
  };
  WholeParameters<T> p{};
  CGC_ASSIGN_OR_RETURN(p.q, map(a.reads[0], *q, queries, queryBox));
  CGC_ASSIGN_OR_RETURN(p.k, map(a.reads[1], *k, keys, keyBox));
  CGC_ASSIGN_OR_RETURN(p.v, map(a.reads[2], *v, keys, keyBox));
  p.qStrides = *q;
  p.out = static_cast<T *>(a.writes[0].data);
  p.outStrides = *out;
  p.heads = Divider(uint32_t(heads));
  p.queries = int(queries);
  p.keys = int(keys);
  p.scale = static_cast<float>(a.floats[0] * kLog2e);
  return p;
}

/// Whether the first four ints are sizes that there may be.
bool hasSizes(const KernelArguments &a) {
  const int64_t batch = a.ints[0], heads = a.ints[1], queries = a.ints[2], keys = a.ints[3];
  return batch >= 1 && heads >= 1 && queries >= 1 && keys >= 1 && batch <= kAttentionMostOfGrid &&
         heads <= kAttentionMostOfGrid && queries <= 1 << 20;
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
  if (a.grid[0] < 1 || a.grid[0] > items || items > kWholeMaxItems || a.grid[1] != 1 ||
      a.grid[2] != 1 || a.block[0] != shape.groups * 128 || a.block[1] != 1 || a.block[2] != 1 ||
      a.sharedBytes != shape.sharedBytes(a.ints[2], a.ints[3]))
    return refuseArguments("the launch is not that of the sizes");
  CGC_ASSIGN_OR_RETURN(WholeParameters<T> p,
                       parametersOf<T>(a, shape.tiles * kWholeQueries, kKeys / boxesOf(kKeys)));
  p.tiles = int(shape.tiles);
  CGC_ASSIGN_OR_RETURN(p.outTiles,
                       headsMap(a.writes[0].data, kDTypeOf<T>, {a.ints[0], a.ints[1], a.ints[2]},
                                {p.outStrides.batch, p.outStrides.head, p.outStrides.row},
                                kWarpQueries, a.onlyChecks));
  if (shape.hasSingle(a.ints[2]))
    p.single = static_cast<const T *>(a.reads[0].data) + (a.ints[2] - 1) * p.qStrides.row;
  p.slices = Divider(uint32_t(shape.items(1, a.ints[2])));
  p.items = int(items);
  p.stages = int(shape.stages);
  p.causal = causal == 1;
  return KernelParameters(p);
}

template <class T> Result<KernelParameters> bindHalves(const KernelArguments &a) {
  if (!hasSizes(a) || !fitsHalves(a.ints[3]))
    return refuseArguments("batch, heads, queries and keys have to be positive, and the keys those "
                           "of the kernel");
  const int64_t items = WholeShape{1, 2, 1}.items(a.ints[0] * a.ints[1], a.ints[2]);
  if (items > kWholeMaxItems || !hasLaunch(a, items, 256, kHalvesSharedBytes))
    return refuseArguments("the launch is not that of the sizes");
  CGC_ASSIGN_OR_RETURN(WholeParameters<T> p, parametersOf<T>(a, kWholeQueries, kHalfKeys));
  p.slices = Divider(uint32_t(WholeShape{1, 2, 1}.items(1, a.ints[2])));
  return KernelParameters(p);
}

} // namespace

#define CGC_WHOLE(KEYS)                                                                            \
  CGC_KERNEL_OF(attention_whole_f16_##KEYS, (attentionWhole<__half, KEYS>),                        \
                (bindWhole<__half, KEYS>))                                                         \
  CGC_KERNEL_OF(attention_whole_bf16_##KEYS, (attentionWhole<__nv_bfloat16, KEYS>),                \
                (bindWhole<__nv_bfloat16, KEYS>))
CGC_WHOLE(64)
CGC_WHOLE(80)
CGC_WHOLE(128)
CGC_WHOLE(208)
CGC_WHOLE(272)
#undef CGC_WHOLE
CGC_KERNEL_OF(attention_halves_f16, attentionHalves<__half>, bindHalves<__half>)
CGC_KERNEL_OF(attention_halves_bf16, attentionHalves<__nv_bfloat16>, bindHalves<__nv_bfloat16>)

} // namespace cgc

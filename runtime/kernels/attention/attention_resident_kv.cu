// attention_resident_kv_*: softmax(scale q k^T) v with all keys and values of a head in shared
// memory, for Hopper and heads of 64 columns. The scores of 64 queries stay in the registers of a
// warpgroup, one part of the keys after another. All warps share a last single query. Heads may be
// strided. Also has the rows of attention_split_kv_*.
#include "runtime/kernels/attention/attention_single.cuh"
#include "runtime/kernels/attention/attention_split_kv.cuh"
#include "runtime/kernels/attention/resident_kv.cuh"

#include <type_traits>

namespace cgc {
namespace {

/// TMA boxes of the keys, and of the values, of a kernel.
template <int kKeys> constexpr int kBoxesOf = int(residentKvBoxes(kKeys));

/// Queries of a tile that one warp computes.
constexpr int kWarpQueries = int(kResidentKvWarpQueries);

/// Counts this warp among those that have finished with a stage. Returns how many had before it.
__device__ uint32_t leave(uint32_t *leavers) {
  uint32_t before;
  asm volatile("atom.acq_rel.cta.shared::cta.inc.u32 %0, [%1], 0xffffffff;"
               : "=r"(before)
               : "r"(sharedAddress(leavers))
               : "memory");
  return before;
}

/// Calls f with the integral constants 0 to kCount - 1.
template <int kCount, int kFirst = 0, class F> __device__ void forEach(F f) {
  if constexpr (kFirst < kCount) {
    f(std::integral_constant<int, kFirst>());
    forEach<kCount, kFirst + 1>(f);
  }
}

/// The number of keys in part `part`.
template <int kKeys, int kPart> __device__ constexpr int widthOf(int part) {
  return part * kPart + kPart < kKeys ? kPart : kKeys - part * kPart;
}

/// Processes keys in parts of 64, the last one of the rest, or up to 80 keys in one part. The
/// tensor cores compute the scores of a part while the threads compute the weights of the previous
/// one.
template <class T, int kKeys>
__global__ void __launch_bounds__(kResidentKvMaxGroups * 128, 1)
    attentionResidentKv(const __grid_constant__ ResidentKvParameters<T> p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kPart = kKeys <= 80 ? kKeys : 64, kParts = (kKeys + kPart - 1) / kPart;
  constexpr int kBoxes = kBoxesOf<kKeys>, kBox = kKeys / kBoxes;
  static_assert(kKeys % 16 == 0);
  extern __shared__ uint8_t dynamic[];
  uint8_t *const memory = dynamic + (1024 - sharedAddress(dynamic) % 1024) % 1024;
  // For each stage. haveKeys: queries and the first box of keys have arrived. haveMoreKeys: the
  // other box. haveValues: the values. singleIsRead: the partial results for the single query of
  // the stage's previous item have been combined.
  __shared__ uint64_t haveKeys[2], haveMoreKeys[2], haveValues[2], singleIsRead[2];
  // For each stage: the position of its item, and the number of warps that have finished with it.
  __shared__ Place places[2];
  __shared__ uint32_t leavers[2];
  __shared__ alignas(16) uint32_t ones[64];
  griddepLaunchDependents();

  const int groups = blockDim.x / 128, group = threadIdx.x / 128;
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const int tilesBytes = p.tiles * kTileBytes;
  const int stageBytes =
      2 * kKeys * kRowBytes + tilesBytes + (p.single ? int(kResidentKvSingleBytes) : 0);

  const auto fetch = [&](int item, int stage) {
    const auto [slice, head, batch] = places[stage] = placeOf(p, item);
    leavers[stage] = 0;
    uint8_t *const to = memory + stage * stageBytes, *const tiles = to + 2 * kKeys * kRowBytes;
    arriveExpectTx(&haveKeys[stage], kBox * kRowBytes + tilesBytes + (p.single ? kRowBytes : 0));
    tmaLoadHead(tiles, &p.q, slice * p.tiles * int(kResidentKvQueries), head, batch,
                &haveKeys[stage]);
    tmaLoadHead(to, &p.k, 0, head, batch, &haveKeys[stage]);
    if constexpr (kBoxes > 1) {
      arriveExpectTx(&haveMoreKeys[stage], (kKeys - kBox) * kRowBytes);
      tmaLoadHead(to + kBox * kRowBytes, &p.k, kBox, head, batch, &haveMoreKeys[stage]);
    }
    if (p.single)
      copyBytes(tiles + tilesBytes, p.single + batch * p.qStrides.batch + head * p.qStrides.head,
                kRowBytes, &haveKeys[stage]);
    arriveExpectTx(&haveValues[stage], kKeys * kRowBytes);
    for (int box = 0; box < kBoxes; ++box)
      tmaLoadHead(to + (kKeys + box * kBox) * kRowBytes, &p.v, box * kBox, head, batch,
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
    griddepWait();
#pragma unroll 1
    for (int s = 0; s < p.stages; ++s)
      if (const int item = blockIdx.x + s * gridDim.x; item < p.items)
        fetch(item, s);
  }
  writeOnes<T>(ones);
  __syncthreads();
  griddepWait();

  const auto waitForMoreKeys = [&](int stage, uint32_t phase) {
    if constexpr (kBoxes > 1)
      waitBarrier(&haveMoreKeys[stage], phase);
  };
  int stage = 0;
  uint32_t phase = 0;
  int turn = 0; // Rotates over items which warpgroup has one tile more.
#pragma unroll 1
  for (int item = blockIdx.x; item < p.items; item += gridDim.x) {
    waitBarrier(&haveKeys[stage], phase);
    const Place place = places[stage];
    uint8_t *const from = memory + stage * stageBytes;
    const uint64_t keys = warpUniform(tileDescriptor(from));
    const uint64_t values = descriptorAt(keys, kKeys * kRowBytes);
    uint8_t *const tiles = from + 2 * kKeys * kRowBytes;
    const int turned = group + turn < groups ? group + turn : group + turn - groups;
#pragma unroll 1
    for (int t = turned; t < p.tiles; t += groups) {
      const int firstQuery = (place.slice * p.tiles + t) * int(kResidentKvQueries);
      if (firstQuery >= p.queries)
        break;
      uint8_t *const tile = tiles + t * kTileBytes;
      const int warpQuery = firstQuery + warp * kWarpQueries;
      const int row = warpQuery + lane / 4, column = lane % 4 * 2;
      const uint64_t q = warpUniform(tileDescriptor(tile));
      // Double-buffered: a part and the next one. A shorter last part uses the first registers.
      float scores[kParts > 1 ? 2 : 1][kPart / 2], bases[2] = {-INFINITY, -INFINITY};
      Accumulators accumulators;
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
        constexpr int kFull = kKeys - int(kResidentKvMaxPaddedKeys) - kFirst;
        hideMissing<kBlocks, (kFull > 0 ? kFull : 0)>(score, p.keys - kFirst, column);
        if (p.causal) {
#pragma unroll
          for (int b = 0; b < kBlocks; ++b)
#pragma unroll
            for (int e = 0; e < 4; ++e)
              if (kFirst + b * 8 + column + e % 2 > row + e / 2 * 8)
                score(b, e) = -INFINITY;
        }
        float factors[2];
        if (exponentiate<kBlocks>(score, p.scale, bases, factors) && kIndex > 0)
          accumulators.multiply(factors);
        if constexpr (kIndex == 0)
          waitBarrier(&haveValues[stage], phase);
        addValues<T, kWidth>(score, descriptorAt(values, kFirst * kRowBytes), ones, accumulators,
                             reinterpret_cast<uint32_t(&)[kWidth / 16][4]>(weights), kIndex > 0);
      });
      wgmmaWait<0>();
      // All warps of the group have read the queries; the results overwrite them.
      syncThreads(1 + group, 128);
      uint8_t *const rows = tile + warp * kWarpQueries * kRowBytes;
      const float scales[2] = {__fdividef(1, divisorOf(accumulators.total(0))),
                               __fdividef(1, divisorOf(accumulators.total(1)))};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        uint32_t pairs[4]; // stmatrix: two groups of 8 rows by two of 8 columns.
#pragma unroll
        for (int m = 0; m < 4; ++m) {
          const float *const two = accumulators.values + 4 * (2 * j + m / 2) + 2 * (m % 2);
          pairs[m] = packPair<T>(two[0] * scales[m % 2], two[1] * scales[m % 2]);
        }
        storeMatrices(swizzledVector(rows, lane % 16, 2 * j + lane / 16), pairs[0], pairs[1],
                      pairs[2], pairs[3]);
      }
      fenceShared();
      __syncwarp();
      if (lane == 0 && warpQuery < p.queries)
        tmaStoreHead(&p.outTiles, warpQuery, place.head, place.batch, rows);
    }
    auto &single = *reinterpret_cast<SingleMemory *>(tiles + tilesBytes);
    if (p.single) {
      waitForMoreKeys(stage, phase);
      waitBarrier(&haveValues[stage], phase);
      // The previous phase is that of the stage's previous item.
      attendSingle<T>(turned * 4 + warp, p.causal ? min(p.keys, p.queries) : p.keys, p.scale, from,
                      from + kKeys * kRowBytes, single, &singleIsRead[stage], phase ^ 1);
    }
    // The last warp to finish with a stage loads the stage's next item. The load overwrites the
    // memory that TMA stores results from.
    if (lane == 0)
      waitStoresRead();
    __syncwarp(); // Orders the writes of all lanes before leave(), which releases them.
    const uint32_t before = lane == 0 ? leave(&leavers[stage]) : 0;
    if (__shfl_sync(0xffffffffu, before, 0) == blockDim.x / 32 - 1) {
      T *const to = p.out + place.batch * p.outStrides.batch + place.head * p.outStrides.head +
                    (p.queries - 1) * p.outStrides.row;
      const int next = item + p.stages * int(gridDim.x);
      __syncwarp(); // Orders the reads of other warps' results after leave().
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

template <class T, int kKeys>
Result<KernelParameters> bindResidentKv(const LaunchView &launch, const LaunchAddresses &at) {
  const ResidentKvLaunch l = *checkResidentKv(launch, kDTypeOf<T>, kKeys);
  CGC_ASSIGN_OR_RETURN(ResidentKvParameters<T> p, parametersOf<T>(at, l));
  CGC_ASSIGN_OR_RETURN(p.outTiles, tensorMap(at.writes[0], kDTypeOf<T>, l.out));
  if (l.shape.hasSingle(l.queries))
    p.single = static_cast<const T *>(at.reads[0]) + (l.queries - 1) * l.qStrides.row;
  p.tiles = int(l.shape.tiles);
  p.items = int(l.items());
  p.stages = int(l.shape.stages);
  p.causal = l.causal;
  return KernelParameters(p);
}

} // namespace

#define CGC_RESIDENT_KV(KEYS)                                                                      \
  CGC_KERNEL_OF(attention_resident_kv_f16_##KEYS, (attentionResidentKv<__half, KEYS>),             \
                (bindResidentKv<__half, KEYS>))                                                    \
  CGC_KERNEL_OF(attention_resident_kv_bf16_##KEYS, (attentionResidentKv<__nv_bfloat16, KEYS>),     \
                (bindResidentKv<__nv_bfloat16, KEYS>))
CGC_RESIDENT_KV(64)
CGC_RESIDENT_KV(80)
CGC_RESIDENT_KV(128)
CGC_RESIDENT_KV(208)
CGC_RESIDENT_KV(272)
#undef CGC_RESIDENT_KV
CGC_KERNEL_OF(attention_split_kv_f16, attentionSplitKv<__half>, bindSplitKv<__half>)
CGC_KERNEL_OF(attention_split_kv_bf16, attentionSplitKv<__nv_bfloat16>, bindSplitKv<__nv_bfloat16>)

} // namespace cgc

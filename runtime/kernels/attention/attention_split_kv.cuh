// attention_split_kv_*: softmax(scale q k^T) v with all keys and values of a head in shared memory,
// for Hopper and heads of 64 columns. Each of two warpgroups has half of the keys of the same 64
// queries. Heads may be strided. Included by attention_resident_kv.cu.
#pragma once

#include "runtime/kernels/attention/resident_kv.cuh"

namespace cgc {
namespace {

/// A CTA computes one item: 64 queries of a head. Its second warpgroup passes the partial results
/// for its half of the keys to the first one.
template <class T>
__global__ void __launch_bounds__(256, 1)
    attentionSplitKv(const __grid_constant__ ResidentKvParameters<T> p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int kKeys = int(kSplitKvKeys), kBlocks = kKeys / 8, kHalfBytes = kKeys * kRowBytes;
  extern __shared__ uint8_t dynamic[];
  uint8_t *const memory = dynamic + (1024 - sharedAddress(dynamic) % 1024) % 1024;
  uint8_t *const keys = memory + kTileBytes, *const values = keys + 2 * kHalfBytes;
  __shared__ uint64_t haveQueries, haveKeys[2], haveValues[2];
  __shared__ alignas(16) uint32_t ones[64];
  griddepLaunchDependents();

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
  griddepWait();
  if (threadIdx.x == 0) {
    const auto fetch = [&](uint8_t *to, const CUtensorMap *map, int row, int bytes,
                           uint64_t *have) {
      arriveExpectTx(have, bytes);
      tmaLoadHead(to, map, row, head, batch, have);
    };
    fetch(memory, &p.q, tile * int(kResidentKvQueries), kTileBytes, &haveQueries);
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
  Accumulators accumulators;
  uint32_t weights[kKeys / 16][4];
  exponentiate<kBlocks>(score, p.scale, bases, unused);
  waitBarrier(&haveValues[group], 0);
  addValues<T, kKeys>(score, tileDescriptor(values + group * kHalfBytes), ones, accumulators,
                      weights, false);
  wgmmaWait<0>();

  // The partial results overwrite the second half of the keys, which its warpgroup has read.
  float *const partial = reinterpret_cast<float *>(keys + kHalfBytes) + threadIdx.x % 128;
  static_assert(kHalfBytes == (32 + 4) * 128 * sizeof(float));
  if (group == 1) {
    syncThreads(1, 128); // All warps of the warpgroup have read the keys.
#pragma unroll
    for (int i = 0; i < 32; ++i)
      partial[i * 128] = accumulators.values[i];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      partial[(32 + h) * 128] = bases[h];
      partial[(34 + h) * 128] = accumulators.total(h);
    }
  }
  __syncthreads();
  if (group == 1)
    return;
  float factors[2][2], totals[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float other = partial[(32 + h) * 128], base = baseOf(fmaxf(bases[h], other));
    factors[h][0] = fastExp2(bases[h] - base);
    factors[h][1] = fastExp2(other - base);
    totals[h] = accumulators.total(h) * factors[h][0] + partial[(34 + h) * 128] * factors[h][1];
  }
#pragma unroll
  for (int i = 0; i < 32; ++i)
    accumulators.values[i] =
        accumulators.values[i] * factors[i / 2 % 2][0] + partial[i * 128] * factors[i / 2 % 2][1];
  T *const out = p.out + batch * p.outStrides.batch + head * p.outStrides.head;
#pragma unroll
  for (int h = 0; h < 2; ++h)
    if (const int query = tile * int(kResidentKvQueries) + warp * 16 + lane / 4 + h * 8;
        query < p.queries)
      storeQuery(out + query * p.outStrides.row, accumulators.values, h, column,
                 1 / divisorOf(totals[h]));
#endif
}

template <class T>
Result<KernelParameters> bindSplitKv(const LaunchView &launch, const LaunchAddresses &at) {
  CGC_ASSIGN_OR_RETURN(const ResidentKvParameters<T> p,
                       parametersOf<T>(at, *checkSplitKv(launch, kDTypeOf<T>)));
  return KernelParameters(p);
}

} // namespace
} // namespace cgc

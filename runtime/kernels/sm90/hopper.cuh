// PTX of sm_90a: mbarrier waits, TMA copies, wgmma descriptors, stmatrix, setmaxnreg, clusters.
#pragma once

#include "runtime/kernels/device.cuh"
#include "runtime/kernels/sm80/async_copy.cuh"

#include <cuda.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace cgc::device {

// mbarrier.

/// Makes initialized barriers visible to TMA, and to the cluster after its next cluster barrier.
__device__ inline void fenceBarrierInit() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// Arrives, and lets the current phase expect this many bytes of TMA loads or of
/// sendToCta().
__device__ inline void arriveExpectTx(uint64_t *barrier, uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAddress(barrier)),
      "r"(bytes)
      : "memory");
}
__device__ inline void arrive(uint64_t *barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(sharedAddress(barrier)) : "memory");
}
/// Arrives at the same barrier of CTA `rank` of the cluster.
__device__ inline void arriveAt(uint64_t *barrier, uint32_t rank) {
  asm volatile("{\n"
               ".reg .b32 address;\n"
               "mapa.shared::cluster.u32 address, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [address];\n"
               "}" ::"r"(sharedAddress(barrier)),
               "r"(rank)
               : "memory");
}
/// Waits until the phase with this parity has completed.
__device__ inline void waitBarrier(uint64_t *barrier, uint32_t parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
               "@done bra end;\n"
               "bra again;\n"
               "end:\n"
               "}" ::"r"(sharedAddress(barrier)),
               "r"(parity)
               : "memory");
}

// TMA.

/// L2 eviction priority of the lines that a copy reads, as createpolicy encodes it.
using CachePolicy = uint64_t;
__device__ inline CachePolicy evictNormal() {
  CachePolicy policy;
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ inline CachePolicy evictFirst() {
  CachePolicy policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/// TMA load of the box at column x and row y of a 2-d tensor; completes its bytes on `barrier`.
__device__ inline void tmaLoad2d(void *to, const CUtensorMap *map, int x, int y,
                                 uint64_t *barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4}], [%2];" ::"r"(sharedAddress(to)),
               "l"(reinterpret_cast<uint64_t>(map)), "r"(sharedAddress(barrier)), "r"(x), "r"(y)
               : "memory");
}
/// TMA load with an L2 eviction hint.
__device__ inline void tmaLoad2d(void *to, const CUtensorMap *map, int x, int y, uint64_t *barrier,
                                 CachePolicy policy) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(sharedAddress(to)),
               "l"(reinterpret_cast<uint64_t>(map)), "r"(sharedAddress(barrier)), "r"(x), "r"(y),
               "l"(policy)
               : "memory");
}
/// Bulk copy of consecutive bytes, a multiple of 16, to shared memory; completes them on `barrier`.
__device__ inline void copyBytes(void *to, const void *from, uint32_t bytes, uint64_t *barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1], %2, [%3];" ::"r"(sharedAddress(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(sharedAddress(barrier))
               : "memory");
}
/// TMA load with multicast to all CTAs of the cluster whose ranks are bits of `ranks`: to the same
/// offset in shared memory, and on the same barrier, of each.
__device__ inline void copyTileMulticast(void *to, const CUtensorMap *map, int x, int y,
                                         uint64_t *barrier, uint16_t ranks) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(sharedAddress(to)),
               "l"(reinterpret_cast<uint64_t>(map)), "r"(sharedAddress(barrier)), "r"(x), "r"(y),
               "h"(ranks)
               : "memory");
}
/// The same of a box of one matrix of a 3-d tensor: column x and row y of matrix z.
__device__ inline void tmaLoad3d(void *to, const CUtensorMap *map, int x, int y, int z,
                                 uint64_t *barrier, CachePolicy policy) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".L2::cache_hint [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(sharedAddress(to)),
               "l"(reinterpret_cast<uint64_t>(map)), "r"(sharedAddress(barrier)), "r"(x), "r"(y),
               "r"(z), "l"(policy)
               : "memory");
}
__device__ inline void copyTileMulticast3d(void *to, const CUtensorMap *map, int x, int y, int z,
                                           uint64_t *barrier, uint16_t ranks) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(sharedAddress(to)),
               "l"(reinterpret_cast<uint64_t>(map)), "r"(sharedAddress(barrier)), "r"(x), "r"(y),
               "r"(z), "h"(ranks)
               : "memory");
}
/// TMA load in im2col mode of 64 channels from `channel` on: of the pixels at offset (dx, dy) in
/// consecutive windows, the first of which begins at (x, y) of an image. `map` is of imageMap().
__device__ inline void tmaLoadPixels(void *to, const CUtensorMap *map, int channel, int x, int y,
                                     int image, int dx, int dy, uint64_t *barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(sharedAddress(to)),
               "l"(reinterpret_cast<uint64_t>(map)), "r"(sharedAddress(barrier)), "r"(channel),
               "r"(x), "r"(y), "r"(image), "h"(uint16_t(dx)), "h"(uint16_t(dy))
               : "memory");
}
/// The same with multicast, as copyTileMulticast().
__device__ inline void copyPixelsMulticast(void *to, const CUtensorMap *map, int channel, int x,
                                           int y, int image, int dx, int dy, uint64_t *barrier,
                                           uint16_t ranks) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
               ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8}, %9;" ::"r"(
                   sharedAddress(to)),
               "l"(reinterpret_cast<uint64_t>(map)), "r"(sharedAddress(barrier)), "r"(channel),
               "r"(x), "r"(y), "r"(image), "h"(uint16_t(dx)), "h"(uint16_t(dy)), "h"(ranks)
               : "memory");
}
/// TMA load of a box of one head, from row `row` on. `map` is of headsMap().
__device__ inline void tmaLoadHead(void *to, const CUtensorMap *map, int row, int head, int batch,
                                   uint64_t *barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(sharedAddress(to)),
               "l"(reinterpret_cast<uint64_t>(map)), "r"(sharedAddress(barrier)), "r"(0), "r"(row),
               "r"(head), "r"(batch)
               : "memory");
}
/// TMA store of a box to column x and row y of a 2-d tensor, clipped to the tensor. The threads
/// that wrote the box call fenceShared() before it. The calling thread calls waitStoresRead()
/// before the CTA exits or overwrites the box.
__device__ inline void tmaStore2d(const CUtensorMap *map, int x, int y, const void *from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];\n"
               "cp.async.bulk.commit_group;" ::"l"(reinterpret_cast<uint64_t>(map)),
               "r"(sharedAddress(from)), "r"(x), "r"(y)
               : "memory");
}
/// TMA store of a box of one head, from row `row` on; otherwise as tmaStore2d(). `map` is of
/// headsMap().
__device__ inline void tmaStoreHead(const CUtensorMap *map, int row, int head, int batch,
                                    const void *from) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];\n"
      "cp.async.bulk.commit_group;" ::"l"(reinterpret_cast<uint64_t>(map)),
      "r"(sharedAddress(from)), "r"(0), "r"(row), "r"(head), "r"(batch)
      : "memory");
}
/// The address of 16-byte vector `index` of a row of 128 bytes in TMA's 128-byte swizzle.
template <class Byte> __device__ Byte *swizzledVector(Byte *rows, int row, int index) {
  static_assert(sizeof(Byte) == 1);
  return rows + row * 128 + (index ^ row % 8) * 16;
}
/// Makes this thread's accesses to shared memory visible to the async proxy (TMA, wgmma).
__device__ inline void fenceShared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
/// Waits until this thread's TMA stores have read shared memory (wait_group.read). A CTA may exit
/// then; the global writes complete by kernel end.
__device__ inline void waitStoresRead() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
/// Prefetches a box to the L2 cache.
__device__ inline void prefetchTile(const CUtensorMap *map, int x, int y, CachePolicy policy) {
  asm volatile(
      "cp.async.bulk.prefetch.tensor.2d.L2.global.L2::cache_hint [%0, {%1, %2}], %3;" ::"l"(
          reinterpret_cast<uint64_t>(map)),
      "r"(x), "r"(y), "l"(policy)
      : "memory");
}
__device__ inline void prefetchMap(const CUtensorMap *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(reinterpret_cast<uint64_t>(map)) : "memory");
}

// wgmma. The instructions with both operands in shared memory are in wgmma.cuh.

/// The matrix descriptor of a tile of 128-byte rows in TMA's 128-byte swizzle, at a multiple of
/// 1024 bytes. Fields (PTX ISA, "matrix descriptor"): address / 16; at bit 16 the leading byte
/// offset / 16, which this swizzle ignores and which is 1 by convention; at bit 32 the stride
/// between groups of 8 rows / 16; at bit 62 swizzle mode 1. Adding 2 advances 16 elements along a
/// row.
__device__ inline uint64_t tileDescriptor(const void *tile) {
  return uint64_t((sharedAddress(tile) & 0x3ffff) >> 4) | uint64_t(1) << 16 |
         uint64_t(1024 >> 4) << 32 | uint64_t(1) << 62;
}
/// The descriptor of tiles of 16 rows of 64 columns, each in TMA's 128-byte swizzle as
/// tileDescriptor(), whose rows are those of K. They lie side by side, from tile to tile `bytes`
/// apart: the leading byte offset. Adding 128 advances 16 rows.
__device__ inline uint64_t columnsDescriptor(const void *tile, int bytes) {
  return uint64_t((sharedAddress(tile) & 0x3ffff) >> 4) | uint64_t(bytes >> 4) << 16 |
         uint64_t(1024 >> 4) << 32 | uint64_t(1) << 62;
}
/// The descriptor of the tile `bytes` after another one. It changes the low word only, so that the
/// compiler keeps the high word an immediate.
__device__ inline uint64_t descriptorAt(uint64_t descriptor, int bytes) {
  return descriptor >> 32 << 32 | (uint32_t(descriptor) + uint32_t(bytes / 16));
}
/// Broadcasts lane 0 so that the compiler sees a warp-uniform value.
__device__ inline uint64_t warpUniform(uint64_t descriptor) {
  return descriptor >> 32 << 32 | __shfl_sync(0xffffffffu, uint32_t(descriptor), 0);
}
__device__ inline void wgmmaFence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmmaCommit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until at most kPending committed groups of wgmma operations are pending.
template <int kPending> __device__ void wgmmaWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// clang-format off
/// Starts d += a b, or d = a b unless `accumulate`. a is a 64 x 16 tile in the registers of a
/// warpgroup, 16 rows for each warp in the layout of mma.m16n8k16. b is a 16 x 64 tile in shared
/// memory, 16 rows of 64 columns, described by tileDescriptor().
template <class T>
__device__ void multiplyByRows(float (&d)[32], const uint32_t (&a)[4], uint64_t b, bool accumulate) {
#define CGC_MULTIPLY_BY_ROWS(TYPE)                                                                 \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %37, 0; "                                           \
               "wgmma.mma_async.sync.aligned.m64n64k16.f32." TYPE "." TYPE " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, p, 1, 1, 1; }" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]) \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(accumulate)))
  if constexpr (std::is_same_v<T, __half>)
    CGC_MULTIPLY_BY_ROWS("f16");
  else
    CGC_MULTIPLY_BY_ROWS("bf16");
#undef CGC_MULTIPLY_BY_ROWS
}
/// As multiplyByRows(), with a 16 x 8 tile b whose elements are all equal: each column of d gets the
/// row sums of a, times that element.
template <class T>
__device__ void multiplyByConstant(float (&d)[4], const uint32_t (&a)[4], const void *b, bool accumulate) {
  const uint64_t descriptor =
      uint64_t((sharedAddress(b) & 0x3ffff) >> 4) | uint64_t(128 >> 4) << 16 | uint64_t(128 >> 4) << 32;
#define CGC_MULTIPLY_BY_CONSTANT(TYPE)                                                                \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %9, 0; "                                            \
               "wgmma.mma_async.sync.aligned.m64n8k16.f32." TYPE "." TYPE " {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, p, 1, 1, 0; }" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                    \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descriptor), "r"(int(accumulate)))
  if constexpr (std::is_same_v<T, __half>)
    CGC_MULTIPLY_BY_CONSTANT("f16");
  else
    CGC_MULTIPLY_BY_CONSTANT("bf16");
#undef CGC_MULTIPLY_BY_CONSTANT
}
// clang-format on

/// Stores four 8x8 matrices of 16-bit elements (stmatrix). Lane l gives the address of row l % 8 of
/// matrix l / 8.
__device__ inline void storeMatrices(void *row, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(sharedAddress(row)),
      "r"(a), "r"(b), "r"(c), "r"(d)
      : "memory");
}
/// Stores as storeMatrices() and transposes each matrix.
template <class P> __device__ void storeTransposed(void *row, P a, P b, P c, P d) {
  static_assert(sizeof(P) == 4);
  const auto bits = [](const P &pair) { return reinterpret_cast<const uint32_t &>(pair); };
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   sharedAddress(row)),
               "r"(bits(a)), "r"(bits(b)), "r"(bits(c)), "r"(bits(d))
               : "memory");
}

/// setmaxnreg: all threads of a warpgroup raise their register count to kCount. It waits until
/// other warpgroups of the CTA have released as many.
template <int kCount> __device__ void growRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}
/// setmaxnreg: all threads of a warpgroup lower their register count to kCount.
template <int kCount> __device__ void shrinkRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}

// Clusters.

__device__ inline uint32_t clusterRank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// Cluster barrier with relaxed arrival, for all threads of all CTAs of the cluster. It does not
/// order memory accesses; barriers that fenceBarrierInit() covered are visible after it.
__device__ inline void syncClusterRelaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\n"
               "barrier.cluster.wait.aligned;" ::
                   : "memory");
}
/// Cluster barrier with release and acquire: writes to shared memory before it are visible after
/// it.
__device__ inline void syncCluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}
/// The shared::cluster address of the same offset in CTA `rank` of the cluster (mapa).
__device__ inline uint32_t addressInCta(const void *local, uint32_t rank) {
  uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(address)
               : "r"(sharedAddress(local)), "r"(rank));
  return address;
}
/// Stores to an address of addressInCta().
__device__ inline void storeToCta(uint32_t address, float4 v) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(v.x),
               "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
}
/// Stores to an address of addressInCta() and completes the bytes on `barrier`, an address of the
/// same CTA (st.async).
__device__ inline void sendToCta(uint32_t address, float v, uint32_t barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(address),
      "r"(__float_as_uint(v)), "r"(barrier)
      : "memory");
}
__device__ inline void sendToCta(uint32_t address, float2 v, uint32_t barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(
          address),
      "r"(__float_as_uint(v.x)), "r"(__float_as_uint(v.y)), "r"(barrier)
      : "memory");
}

} // namespace cgc::device

// cp.async copies to shared memory and mbarrier operations of sm_80 and later.
#pragma once

#include "runtime/kernels/device.cuh"

#include <cstdint>

namespace cgc::device {

/// Starts a copy of 16 or 4 bytes to shared memory, of zeros if not `valid`.
template <int kBytes = 16>
__device__ inline void copyAsync(void *to, const void *from, bool valid) {
  static_assert(kBytes == 16 || kBytes == 4);
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(sharedAddress(to)),
                 "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(sharedAddress(to)), "l"(from),
                 "r"(valid ? 4 : 0)
                 : "memory");
}

// Completion by groups of copies.

/// Commits this thread's copies so far as a group.
__device__ inline void commitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most the last `kPending` groups of this thread are pending.
template <int kPending> __device__ void waitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Completion by arrival at an mbarrier.

__device__ inline void initBarrier(uint64_t *barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(sharedAddress(barrier)),
               "r"(arrivals));
}
/// Arrives once this thread's copies so far have completed.
__device__ inline void arriveWithCopies(uint64_t *barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(sharedAddress(barrier))
               : "memory");
}
/// Waits until the phase with this parity has completed. Works before sm_90, unlike waitBarrier.
__device__ inline void waitPhase(uint64_t *barrier, uint32_t parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n"
               "@!done bra again;\n"
               "}" ::"r"(sharedAddress(barrier)),
               "r"(parity)
               : "memory");
}

} // namespace cgc::device

// The parameter of the attention kernels that take a mask.
#pragma once

#include "runtime/kernels/attention/heads.h"
#include "runtime/kernels/attention/softmax_guards.h"
#include "runtime/kernels/device/device_kernels.h"

namespace cgc {

constexpr float kLog2e = 1.4426950408889634f;

/// The kernel parameter of attention with an optional mask.
template <class T> struct HeadsParameters {
  const T *q, *k, *v, *mask; ///< mask may be null; the kernel adds it to the scaled scores.
  T *out;
  HeadStrides qStrides, kStrides, vStrides, maskStrides, outStrides;
  int queries, keys, width, maskBatches; ///< Batch b has the mask of b % maskBatches.
  float scale;
  bool causal;       ///< Query i attends to keys 0 to i.
  bool maskHasPairs; ///< As Heads::maskHasPairs.
};

/// The mask of a head, of a launch with masks.
template <class T>
__device__ const T *maskOf(const HeadsParameters<T> &p, int64_t batch, int64_t head) {
  return p.mask + batch % p.maskBatches * p.maskStrides.batch + head * p.maskStrides.head;
}

template <class T>
HeadsParameters<T> headsParameters(const LaunchAddresses &at, const Heads &heads) {
  return {.q = static_cast<const T *>(at.reads[0]),
          .k = static_cast<const T *>(at.reads[1]),
          .v = static_cast<const T *>(at.reads[2]),
          .mask = static_cast<const T *>(at.reads[3]),
          .out = static_cast<T *>(at.writes[0]),
          .qStrides = heads.q,
          .kStrides = heads.k,
          .vStrides = heads.v,
          .maskStrides = heads.mask,
          .outStrides = heads.out,
          .queries = int(heads.queries),
          .keys = int(heads.keys),
          .width = int(heads.width),
          .maskBatches = int(heads.maskBatches),
          .scale = static_cast<float>(heads.scale),
          .causal = heads.causal,
          .maskHasPairs = heads.maskHasPairs};
}

} // namespace cgc

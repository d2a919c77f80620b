// The guards of a softmax for queries without a visible key, of the attention kernels and of their
// references. Such a query gets the result 0, as from LibTorch's scaled_dot_product_attention.
#pragma once

#include <cmath>

#ifdef __CUDACC__
#define CGC_HOST_DEVICE __host__ __device__
#else
#define CGC_HOST_DEVICE
#endif

namespace cgc {

/// The number to subtract from the scores of a query before exp(): their maximum. 0 if that is
/// -infinity: the weights are then 0, and not NaN, as exp(-infinity - -infinity) is.
CGC_HOST_DEVICE inline float baseOf(float highest) {
  return highest == -INFINITY ? 0 : highest;
}
/// The divisor for the total weight of a query. The total is 0 only if all scores are -infinity,
/// because the highest score has a weight of at least 1. The weighted sums are then 0, too.
CGC_HOST_DEVICE inline float divisorOf(float total) {
  return total == 0 ? 1 : total;
}

} // namespace cgc

#undef CGC_HOST_DEVICE

// The guards of a softmax for queries without a visible key, of the attention kernels and of their
// references. A query whose keys are all masked by -infinity gets the result 0, as from LibTorch's
// scaled_dot_product_attention. One whose keys all have finfo.min gets the mean of the values.
#pragma once

#include <cfloat>
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
/// The element of an f16 mask, converted to f32, as the number to add to an f32 score. The lowest
/// f16 number, finfo.min, becomes that of f32: a sum with it does not depend on the score, as in a
/// model whose mask and scores are both f32 or both f16.
CGC_HOST_DEVICE inline float addendOfF16Mask(float mask) {
  return mask == -65504 ? -FLT_MAX : mask;
}
/// The divisor for the total weight of a query. The total is 0 only if all scores are -infinity,
/// because the highest score has a weight of at least 1. The weighted sums are then 0, too.
CGC_HOST_DEVICE inline float divisorOf(float total) {
  return total == 0 ? 1 : total;
}

} // namespace cgc

#undef CGC_HOST_DEVICE

// References of square_sums_f32 and gradient_norm_f32.
#include "runtime/kernels/optimizer/tensor_groups.h"
#include "runtime/kernels/reference_elements.h"

#include <cmath>

namespace cgc::reference {
namespace {

void squareSums(const ReferenceArguments &a) {
  float *sum = resultOf<float>(a.writes[0]);
  for (const TensorView &tensor : a.reads) {
    const float *x = dataOf<float>(tensor);
    const auto chunk = int64_t(kGroupChunk);
    for (int64_t left = elementsOf(tensor); left > 0; left -= chunk, x += chunk)
      *sum++ = sumOf(std::min(left, chunk), [&](int64_t i) { return x[i] * x[i]; });
  }
}

void gradientNorm(const ReferenceArguments &a) {
  const float *sums = dataOf<float>(a.reads[0]);
  *resultOf<float>(a.writes[0]) =
      std::sqrt(sumOf(elementsOf(a.reads[0]), [&](int64_t i) { return sums[i]; }));
}

} // namespace

CGC_REFERENCE(square_sums_f32, squareSums)
CGC_REFERENCE(gradient_norm_f32, gradientNorm)

} // namespace cgc::reference

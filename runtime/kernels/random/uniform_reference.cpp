// Reference of uniform_f32.
#include "runtime/base/philox.h"
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {
namespace {

void uniform(const ReferenceArguments &a) {
  const int64_t seed = *dataOf<int64_t>(a.reads[0]), offset = *dataOf<int64_t>(a.reads[1]);
  float *y = resultOf<float>(a.writes[0]);
  const int64_t elements = elementsOf(a.writes[0]);
  for (int64_t i = 0; i < elements; i += 4) {
    const PhiloxWords words = uniformWords(uint32_t(i / 4), uint32_t(a.ints[0]), seed, offset);
    for (int64_t k = i; k < std::min(i + 4, elements); ++k)
      y[k] = uniformNumber(words.words[k - i]);
  }
}

} // namespace

CGC_REFERENCE(uniform_f32, uniform)

} // namespace cgc::reference

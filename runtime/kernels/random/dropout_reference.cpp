// Reference of dropout_*.
#include "runtime/base/philox.h"
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {
namespace {

template <class T> void dropout(const ReferenceArguments &a) {
  const int64_t seed = *dataOf<int64_t>(a.reads[0]), offset = *dataOf<int64_t>(a.reads[1]);
  const T *x = dataOf<T>(a.reads[2]);
  T *y = resultOf<T>(a.writes[0]);
  const float p = float(a.floats[0]), scale = float(1 / (1 - a.floats[0]));
  const int64_t elements = elementsOf(a.writes[0]);
  for (int64_t i = 0; i < elements; i += 4) {
    const PhiloxWords words = uniformWords(uint32_t(i / 4), uint32_t(a.ints[0]), seed, offset);
    for (int64_t k = i; k < std::min(i + 4, elements); ++k)
      y[k] = fromFloat<T>(uniformNumber(words.words[k - i]) < p ? 0 : toFloat(x[k]) * scale);
  }
}

} // namespace

CGC_REFERENCE(dropout_f32, dropout<float>)
CGC_REFERENCE(dropout_f16, dropout<F16>)
CGC_REFERENCE(dropout_bf16, dropout<BF16>)

} // namespace cgc::reference

// References of tokens_*.
#include "runtime/kernels/rowwise/reference_rows.h"

namespace cgc::reference {
namespace {

template <class T> void tokens(const ReferenceArguments &a) {
  const TensorView &patches = a.reads[0], &token = a.reads[1], &positions = a.reads[2];
  const int64_t images = patches.sizes[0], count = patches.sizes[1] + 1, columns = patches.sizes[2];
  for (int64_t image = 0; image < images; ++image)
    for (int64_t t = 0; t < count; ++t) {
      const T *const from =
          t == 0 ? dataOf<T>(token) : dataOf<T>(patches) + (image * (count - 1) + t - 1) * columns;
      addRow(resultOf<T>(a.writes[0]) + (image * count + t) * columns, from,
             positions.data ? dataOf<T>(positions) + t * columns : nullptr, columns);
    }
}

} // namespace

CGC_FLOAT_REFERENCES(tokens, tokens)

} // namespace cgc::reference

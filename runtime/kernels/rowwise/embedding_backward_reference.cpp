// References of embedding_backward_*.
#include "runtime/kernels/reference_elements.h"

#include <map>

namespace cgc::reference {
namespace {

template <class T> void embeddingBackward(const ReferenceArguments &a) {
  const TensorView &ids = a.reads[1], &y = a.writes[0];
  const int64_t columns = y.sizes[1], padding = a.ints[0];
  std::map<int64_t, std::vector<float>> sums;
  for (int64_t row = 0; row < elementsOf(ids); ++row) {
    const int64_t id = indexAt(ids, row, y.sizes[0]);
    if (id == padding)
      continue;
    std::vector<float> &sum = sums.try_emplace(id, columns).first->second;
    for (int64_t i = 0; i < columns; ++i)
      sum[i] += toFloat(dataOf<T>(a.reads[0])[row * columns + i]);
  }
  for (const auto &[id, sum] : sums)
    storeRow(sum.data(), columns, resultOf<T>(y) + id * columns);
}

} // namespace

CGC_FLOAT_REFERENCES(embedding_backward, embeddingBackward)

} // namespace cgc::reference

// References of gather and scatter_add_*.
#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {
namespace {

/// Calls `f(i, at)` for each index `i`, of the element `at` of x that it selects.
template <class F> void forIndices(const TensorView &x, const TensorView &indices, F f) {
  const int64_t n = x.sizes[1], k = indices.sizes[1], inner = x.sizes[2];
  for (int64_t i = 0; i < elementsOf(indices); ++i)
    f(i, (i / (k * inner) * n + indexAt(indices, i, n)) * inner + i % inner);
}

void gatherElements(const ReferenceArguments &a) {
  const TensorView &x = a.reads[0];
  withType(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    forIndices(x, a.reads[1],
               [&](int64_t i, int64_t at) { resultOf<T>(a.writes[0])[i] = dataOf<T>(x)[at]; });
  });
}

template <class T> void scatterAdd(const ReferenceArguments &a) {
  const int64_t elements = elementsOf(a.reads[0]);
  std::vector<float> sums(elements);
  loadRow(dataOf<T>(a.reads[0]), elements, sums.data());
  forIndices(a.reads[0], a.reads[1],
             [&](int64_t i, int64_t at) { sums[at] += toFloat(dataOf<T>(a.reads[2])[i]); });
  storeRow(sums.data(), elements, resultOf<T>(a.writes[0]));
}

} // namespace

CGC_REFERENCE(gather, gatherElements)
CGC_FLOAT_REFERENCES(scatter_add, scatterAdd)

} // namespace cgc::reference

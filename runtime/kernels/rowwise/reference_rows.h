// addRow: the step that the references of kernels for gathered rows have in common.
#pragma once

#include "runtime/kernels/reference_elements.h"

namespace cgc::reference {

/// to = from + addend for a row, rounded once. `addend` may be null.
template <class T> void addRow(T *to, const T *from, const T *addend, int64_t columns) {
  for (int64_t i = 0; i < columns; ++i)
    to[i] = addend ? fromFloat<T>(toFloat(from[i]) + toFloat(addend[i])) : from[i];
}

} // namespace cgc::reference

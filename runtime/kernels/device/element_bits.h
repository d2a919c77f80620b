// Numbers as elements of a dtype, for kernels that take a number in place of an operand.
#pragma once

#include "runtime/base/dtype.h"

#include <cstdint>

namespace cgc {

/// An element of any dtype, in the first bytes. A kernel reads an operand that is a number from it.
using ElementBits = uint64_t;

/// `number` as an element of `dtype`, which represents it (represents() in strided.h). A floating
/// dtype rounds it.
ElementBits elementBits(DType dtype, double number);

} // namespace cgc

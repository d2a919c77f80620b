// checkAtenValues: the arguments of ATen calls whose values LibTorch does not check, or checks only
// after it has allocated what they ask for.
#pragma once

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

#include <span>

namespace cgc {

/// InvalidFile, without the op's name, if LibTorch would write to an argument, divide by zero, read
/// outside a tensor, draw random numbers or allocate another result than the plan's. `tensors` are
/// the bucket's, and every id of `call` is one of them. Arguments of a wrong kind are left to the
/// provider, which knows LibTorch's schemas.
Status checkAtenValues(const AtenCall &call, std::span<const TensorRef> tensors);

} // namespace cgc

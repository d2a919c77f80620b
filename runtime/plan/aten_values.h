// checkAtenValues: checks arguments of ATen calls whose values LibTorch does not check, or checks
// only after it has allocated the result.
#pragma once

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

#include <span>

namespace cgc {

/// InvalidFile if LibTorch would write to an argument, divide by zero, read outside a tensor, draw
/// random numbers or allocate a result other than the plan's. The message does not name the op.
/// `tensors` are the bucket's tensors; every id in `call` must be valid. Arguments of a wrong kind
/// are left to the provider, which knows LibTorch's schemas.
Status checkAtenValues(const AtenCall &call, std::span<const TensorRef> tensors);

} // namespace cgc

// bindCall: one AtenCall of a plan, resolved in LibTorch's dispatcher and bound to memory.
#pragma once

#include "runtime/plan/op_provider.h"

#include <c10/core/Device.h>

namespace cgc::aten {

/// Tensors of the bucket become LibTorch tensors over `address(id)` on `device`; they own nothing.
/// Unsupported for an op that no plan may call (runtime/plan/aten_ops.h). May throw what LibTorch
/// throws.
Result<std::unique_ptr<BoundCall>> bindCall(const AtenCall &call, const Bucket &bucket,
                                            const std::function<void *(TensorId)> &address,
                                            c10::Device device);

} // namespace cgc::aten

// bindCall: resolves an AtenCall in LibTorch's dispatcher and binds it to memory.
#pragma once

#include "runtime/plan/op_provider.h"

#include <c10/core/Device.h>

namespace cgc::aten {

/// Resolves `call` and binds its tensors as LibTorch tensors over `address(id)` on `device`. They
/// do not own that memory, which must outlive the result. Unsupported if no plan may call the op
/// (runtime/plan/aten_ops.h), or if LibTorch has no such overload or it takes other arguments. May
/// throw LibTorch's exceptions.
Result<std::unique_ptr<BoundCall>> bindCall(const AtenCall &call, const Bucket &bucket,
                                            const std::function<void *(TensorId)> &address,
                                            c10::Device device);

} // namespace cgc::aten

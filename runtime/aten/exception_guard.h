// guarded(): converts LibTorch's exceptions to Status wherever the runtime calls LibTorch.
#pragma once

#include "runtime/base/status.h"

#include <functional>

namespace cgc::aten {

/// Calls `body` and converts an exception to a Status: OutOfMemory, Device for a fault of the
/// accelerator, else Failed. The message is LibTorch's, without its C++ backtrace.
Status guarded(const std::function<Status()> &body);

} // namespace cgc::aten

// Checks of the addresses of a request's views against the GPU that runs it.
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/plan/plan.h"

#include <optional>
#include <span>

namespace cgc {

/// The GPU of the first view in device memory; std::nullopt if all views are in host memory.
Result<std::optional<int>> deviceOfViews(std::span<const TensorView> inputs,
                                         std::span<const TensorView> outputs);

/// Usage, naming the view, if one that is said to be in device memory is not in that of GPU
/// `device`, or if one that is said to be in host memory is in a GPU's. `entry` names the views.
Status checkAddresses(const Entry &entry, std::span<const TensorView> inputs,
                      std::span<const TensorView> outputs, int device);

} // namespace cgc

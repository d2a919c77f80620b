// Choosing the bucket that fits a call's inputs, and checking its views.
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/plan/plan.h"

#include <span>
#include <string_view>

namespace cgc {

/// The entry called `name`; Usage with the names that there are.
Result<const Entry *> findEntry(const PlanData &plan, std::string_view name);

/// The bucket of `entry` whose input shapes are those of `inputs`; Usage with what the plan offers.
Result<size_t> selectBucket(const Entry &entry, std::span<const TensorView> inputs);

/// Usage unless each view has data, is dense, lies where `target` can reach it, and has the
/// tensor's dtype and sizes. `kind` is "input" or "output".
Status checkViews(std::span<const IoTensor> tensors, std::span<const TensorView> views,
                  DeviceKind target, std::string_view kind);

/// Usage, with input, index and value, if an integer input on the host has a value that is not
/// below its bound. What lies on a device is not looked at.
Status checkIndices(std::span<const IoTensor> inputs, std::span<const TensorView> views);

} // namespace cgc

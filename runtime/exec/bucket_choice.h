// Choice of the bucket that fits a call's inputs, and checks of the call's views.
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/plan/plan.h"

#include <span>
#include <string_view>

namespace cgc {

/// The entry called `name`. Usage if there is none; the message lists the plan's entries.
Result<const Entry *> findEntry(const PlanData &plan, std::string_view name);

/// The index of the bucket of `entry` whose input shapes equal those of `inputs`. Usage if there is
/// none; the message lists the shapes of all buckets.
Result<size_t> selectBucket(const Entry &entry, std::span<const TensorView> inputs);

/// Usage unless each view has data, is dense, is accessible to `target`, and has the dtype and
/// sizes of its tensor. `kind` is "input" or "output", for messages.
Status checkViews(std::span<const IoTensor> tensors, std::span<const TensorView> views,
                  DeviceKind target, std::string_view kind);

/// Usage if an integer input in host memory has a value outside its bounds; the message names
/// input, element and value. Inputs in device memory are not checked.
Status checkIndices(std::span<const IoTensor> inputs, std::span<const TensorView> views);

} // namespace cgc

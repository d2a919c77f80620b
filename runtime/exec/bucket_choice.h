// Choice of the bucket that fits a call's inputs, and checks of the call's views.
#pragma once

#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/exec/row_range.h"
#include "runtime/plan/plan.h"

#include <span>
#include <string_view>

namespace cgc {

/// The entry called `name`. Usage if there is none; the message lists the plan's entries.
Result<const Entry *> findEntry(const PlanData &plan, std::string_view name);

/// Usage unless `inputs` have the number and dtypes of the inputs of `entry`.
Status checkInputTypes(const Entry &entry, std::span<const TensorView> inputs);

/// The index of the bucket of `entry` whose input shapes equal those of `inputs`, which have passed
/// checkInputTypes(); std::nullopt if there is none.
std::optional<size_t> findBucket(const Entry &entry, std::span<const TensorView> inputs);

/// A Usage status for inputs that fit no bucket of `entry`; lists the shapes of all buckets.
Status noBucket(const Entry &entry, std::span<const TensorView> inputs);

/// The index of the bucket of `entry` whose input shapes equal those of `inputs`. Usage if there is
/// none; the message lists the shapes of all buckets.
Result<size_t> selectBucket(const Entry &entry, std::span<const TensorView> inputs);

/// Usage unless each view has data, is dense, is accessible to `target`, and has the dtype and
/// sizes of its tensor, with `rows`, if given, as the size of its batch dimension. `kind` is
/// "input" or "output", for messages.
Status checkViews(std::span<const IoTensor> tensors, std::span<const TensorView> views,
                  DeviceKind target, std::string_view kind, std::optional<int64_t> rows = {});

} // namespace cgc

// Checks of the indices in inputs (IoTensor::indexBounds): of those in host memory before a run, of
// those in device memory by a kernel.
#pragma once

#include "runtime/base/tensor_view.h"
#include "runtime/exec/pinned_buffer.h"
#include "runtime/exec/row_range.h"
#include "runtime/plan/plan.h"

#include <optional>
#include <span>

namespace cgc {

/// Usage if an integer input in host memory has a value outside its bounds; the message names
/// input, element and value. Inputs in device memory are not checked. With `rows`, only those rows
/// are checked, of views with `rows->total` rows.
Status checkIndices(std::span<const IoTensor> inputs, std::span<const TensorView> views,
                    const std::optional<RowRange> &rows = {});

/// The same for a batch of `rows` rows, which runs of `bucket` take one after another; the bucket's
/// own sizes without `rows`.
Status checkIndices(const Bucket &bucket, std::span<const TensorView> views,
                    std::optional<int64_t> rows);

/// The checks of inputs in device memory that a context makes. They report the first index out of
/// range to pinned host memory, where take() finds it without a wait.
class IndexChecks final {
public:
  /// Loads the kernel and allocates the report, which a capture may not do, unless that is done.
  Status prepare();
  /// Enqueues the checks of an input of a bucket at `data`, its address in device memory. With
  /// `rows`, other rows hold zeros. After prepare().
  Status enqueue(const IoTensor &input, const std::byte *data, const std::optional<RowRange> &rows,
                 cudaStream_t on) const;
  /// Usage, as from checkIndices(), if a check that has run since the last call found an index out
  /// of range: the first one. `plan` has the inputs of all calls of enqueue().
  Status take(const PlanData &plan);

private:
  PinnedBuffer report_;
};

} // namespace cgc

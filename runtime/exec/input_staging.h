// InputStaging: the inputs of a run on their way to the GPU while the run before it goes on.
#pragma once

#include "runtime/base/tensor_view.h"
#include "runtime/exec/buffer.h"
#include "runtime/exec/cuda_support.h"
#include "runtime/plan/plan.h"

#include <memory>
#include <span>
#include <vector>

namespace cgc {

/// Device memory for the large host inputs of one run. A run copies them from there to its static
/// buffers, after which those of the next run are copied to it, on a stream of its own.
class InputStaging final {
public:
  /// The memory for the inputs of a run that have at least `smallest` bytes; 0 if there are none.
  static uint64_t bytesFor(const PlanData &plan, uint64_t smallest);
  static Result<std::unique_ptr<InputStaging>> create(uint64_t bytes, uint64_t smallest);
  /// Waits for the copies.
  ~InputStaging();

  /// Starts to copy the large inputs of a run of `bucket` that are on the host and have no bounds
  /// for indices. Returns all inputs, those on the device, for enqueueing the run. Memory of the
  /// host that is not pinned makes this wait.
  Result<std::vector<TensorView>> begin(const Bucket &bucket, std::span<const TensorView> inputs);
  /// Lets `on` wait for the copies that begin() started. Does nothing if there are none.
  Status waitOn(cudaStream_t on);
  /// The work on `on` up to now has read them. Does nothing if there are none.
  Status end(cudaStream_t on);
  /// Waits for the copies of a run that was not enqueued.
  void abandon();
  /// Whether the tensor is here.
  bool has(const TensorView &view) const;

private:
  Buffer buffer_;
  CudaStream stream_;
  CudaEvent copied_, read_;
  uint64_t smallest_ = 0;
  bool isPending_ = false; ///< Between begin() and end().
};

} // namespace cgc

// InputStaging: a stream that copies inputs, and the events between it and the stream of runs.
#include "runtime/exec/input_staging.h"

#include "runtime/base/checked.h"

#include <algorithm>
#include <utility>

namespace cgc {
namespace {

uint64_t stagedBytes(const IoTensor &input, uint64_t smallest) {
  const uint64_t bytes = input.indexBounds.empty() ? *tensorBytes(input.dtype, input.sizes) : 0;
  return bytes < smallest ? 0 : *alignUp(bytes, kBufferAlignment);
}

} // namespace

uint64_t InputStaging::bytesFor(const PlanData &plan, uint64_t smallest) {
  uint64_t most = 0;
  for (const Entry &entry : plan.entries)
    for (const Bucket &bucket : entry.buckets) {
      uint64_t bytes = 0;
      for (const IoTensor &input : bucket.inputs)
        bytes += stagedBytes(input, smallest);
      most = std::max(most, bytes);
    }
  return most;
}

Result<std::unique_ptr<InputStaging>> InputStaging::create(uint64_t bytes, uint64_t smallest) {
  auto staging = std::make_unique<InputStaging>();
  staging->smallest_ = smallest;
  CGC_ASSIGN_OR_RETURN(staging->buffer_, Buffer::allocate(DeviceKind::Cuda, bytes));
  CGC_ASSIGN_OR_RETURN(staging->stream_, createStream());
  CGC_ASSIGN_OR_RETURN(staging->copied_, createEvent());
  CGC_ASSIGN_OR_RETURN(staging->read_, createEvent());
  return staging;
}

InputStaging::~InputStaging() {
  abandon();
}

void InputStaging::abandon() {
  if (stream_)
    (void)cudaStreamSynchronize(stream_.get());
  isPending_ = false;
}

Result<std::vector<TensorView>> InputStaging::begin(const Bucket &bucket,
                                                    std::span<const TensorView> inputs) {
  std::vector<TensorView> staged(inputs.begin(), inputs.end());
  isPending_ = false;
  uint64_t at = 0;
  for (size_t i = 0; i < staged.size(); ++i) {
    const uint64_t bytes = stagedBytes(bucket.inputs[i], smallest_);
    if (bytes == 0 || staged[i].device != DeviceKind::Cpu)
      continue;
    if (!std::exchange(isPending_, true)) // An event without a record lets it go on.
      CGC_TRY(CGC_CUDA(cudaStreamWaitEvent(stream_.get(), read_.get(), 0), "cannot wait"));
    CGC_TRY(CGC_CUDA(cudaMemcpyAsync(buffer_.data() + at, staged[i].data,
                                     *tensorBytes(staged[i].dtype, bucket.inputs[i].sizes),
                                     cudaMemcpyHostToDevice, stream_.get()),
                     "cannot copy input '" + bucket.inputs[i].name + "'"));
    staged[i].data = buffer_.data() + at;
    staged[i].device = DeviceKind::Cuda;
    at += bytes;
  }
  if (isPending_)
    CGC_TRY(CGC_CUDA(cudaEventRecord(copied_.get(), stream_.get()), "cannot record an event"));
  return staged;
}

Status InputStaging::waitOn(cudaStream_t on) {
  return isPending_ ? CGC_CUDA(cudaStreamWaitEvent(on, copied_.get(), 0), "cannot wait")
                    : Status::ok();
}

Status InputStaging::end(cudaStream_t on) {
  return std::exchange(isPending_, false)
             ? CGC_CUDA(cudaEventRecord(read_.get(), on), "cannot record an event")
             : Status::ok();
}

bool InputStaging::has(const TensorView &view) const {
  const auto *const data = static_cast<const std::byte *>(view.data);
  return view.device == DeviceKind::Cuda && data >= buffer_.data() &&
         data < buffer_.data() + buffer_.size();
}

} // namespace cgc

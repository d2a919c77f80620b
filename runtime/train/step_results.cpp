// StepResults: slots, and losses as numbers.
#include "runtime/train/step_results.h"

#include "runtime/exec/communicator_impl.h"
#include "runtime/kernels/reference_elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

namespace cgc {
namespace {

template <class T> T load(const std::byte *data) {
  T value;
  std::memcpy(&value, data, sizeof(value));
  return value;
}

double lossOf(DType dtype, const std::byte *data) {
  switch (dtype) {
  case DType::F64:
    return load<double>(data);
  case DType::F16:
    return reference::toFloat(load<reference::F16>(data));
  case DType::BF16:
    return reference::toFloat(load<reference::BF16>(data));
  default:
    return load<float>(data);
  }
}

/// The bytes of an output in a slot, with padding, so that the next one is aligned.
uint64_t slotBytes(const IoTensor &output) {
  constexpr uint64_t kAlignment = 16;
  const uint64_t bytes = *tensorBytes(output.dtype, output.sizes);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

} // namespace

Result<StepResults> StepResults::create(std::span<const Entry *const> entries, DeviceKind device,
                                        size_t slots, bool readsAll, Communicator *communicator) {
  StepResults results;
  results.device_ = device;
  results.slots_ = slots;
  results.readsAll_ = readsAll;
  results.communicator_ = communicator;
  uint64_t bytes = 0;
  for (const Entry *entry : entries)
    for (const Bucket &bucket : entry->buckets)
      bytes = std::max(bytes, results.offsetOf(bucket, readsAll ? bucket.outputs.size() : 1));
  if (device == DeviceKind::Cpu) {
    results.host_.resize(bytes);
    return results;
  }
  for (size_t i = 0; i < slots; ++i) {
    CGC_ASSIGN_OR_RETURN(PinnedMemory memory, PinnedMemory::allocate(bytes));
    results.pinned_.push_back(std::move(memory));
  }
  return results;
}

uint64_t StepResults::offsetOf(const Bucket &bucket, size_t index) const {
  uint64_t offset = 0;
  for (size_t i = 0; i < index; ++i)
    offset += slotBytes(bucket.outputs[i]);
  return offset;
}

std::byte *StepResults::slotData(size_t slot) const {
  return device_ == DeviceKind::Cpu ? const_cast<std::byte *>(host_.data()) : pinned_[slot].data();
}

std::optional<TensorView> StepResults::view(const Bucket &bucket, size_t index) const {
  if (index > 0 && !readsAll_)
    return std::nullopt;
  const IoTensor &output = bucket.outputs[index];
  return TensorView{
      slotData(next_) + offsetOf(bucket, index), output.dtype, DeviceKind::Cpu, output.sizes, {}};
}

void StepResults::finish(const Flight &flight) {
  const std::byte *const data = slotData(flight.slot);
  StepResult result{flight.number, lossOf(flight.bucket->outputs[0].dtype, data), {}};
  for (size_t i = 0; readsAll_ && i < flight.bucket->outputs.size(); ++i) {
    const IoTensor &output = flight.bucket->outputs[i];
    const std::byte *const from = data + offsetOf(*flight.bucket, i);
    result.outputs.emplace_back(from, from + *tensorBytes(output.dtype, output.sizes));
  }
  if (!std::isfinite(result.loss))
    ++nonFinite_;
  results_.push_back(std::move(result));
  if (results_.size() > slots_)
    results_.pop_front();
}

Status StepResults::add(uint64_t number, const Bucket &bucket, cudaStream_t stream) {
  if (device_ == DeviceKind::Cpu) {
    finish({number, &bucket, 0});
    return Status::ok();
  }
  inFlight_.push_back({number, &bucket, next_});
  const size_t slot = next_;
  next_ = (next_ + 1) % slots_;
  return pinned_[slot].mark(stream);
}

Status StepResults::makeRoom() {
  CGC_TRY(collect());
  if (device_ == DeviceKind::Cpu || inFlight_.size() < slots_)
    return Status::ok();
  CGC_TRY(wait(inFlight_.front()));
  return collect();
}

Status StepResults::wait(const Flight &flight) const {
  const PinnedMemory &memory = pinned_[flight.slot];
  return communicator_ ? waitWithin(*communicator_, memory.done.get(),
                                    "step " + std::to_string(flight.number))
                       : memory.wait();
}

Status StepResults::collect() {
  while (!inFlight_.empty()) {
    CGC_ASSIGN_OR_RETURN(const bool done, pinned_[inFlight_.front().slot].isDone());
    if (!done)
      break;
    finish(inFlight_.front());
    inFlight_.pop_front();
  }
  return Status::ok();
}

Status StepResults::collectAll() {
  while (!inFlight_.empty()) {
    CGC_TRY(wait(inFlight_.front()));
    finish(inFlight_.front());
    inFlight_.pop_front();
  }
  return Status::ok();
}

std::vector<StepResult> StepResults::take() {
  std::vector<StepResult> taken{std::make_move_iterator(results_.begin()),
                                std::make_move_iterator(results_.end())};
  results_.clear();
  return taken;
}

void StepResults::clear() {
  for (const Flight &flight : inFlight_)
    (void)pinned_[flight.slot].wait(); // A device that failed copies nothing more.
  inFlight_.clear();
  results_.clear();
  nonFinite_ = 0;
}

} // namespace cgc

// The fake GPU's state: faults, the call log, and streams whose work runs on demand.
#include "tests/fake_cuda/state.h"

#include <cstring>

namespace cgc::test::fake_cuda {

State &State::get() {
  // Never destroyed, because CUDA handles in static storage may outlive it.
  static State *state = new State;
  return *state;
}

Stream &State::stream(cudaStream_t handle) {
  return handle ? *reinterpret_cast<Stream *>(handle) : legacy;
}

uint64_t State::allocatedOnDevice() const {
  uint64_t bytes = 0;
  for (const auto &[address, size] : device)
    bytes += size;
  return bytes;
}

bool State::onDevice(const void *data, uint64_t bytes) const {
  auto *const begin = static_cast<std::byte *>(const_cast<void *>(data));
  const auto after = device.upper_bound(begin);
  if (after == device.begin())
    return false;
  const auto &[address, size] = *std::prev(after);
  return begin + bytes <= address + size;
}

bool State::isPinned(const void *data) const {
  auto *const begin = static_cast<std::byte *>(const_cast<void *>(data));
  const auto after = pinned.upper_bound(begin);
  return after != pinned.begin() && begin < std::prev(after)->first + std::prev(after)->second;
}

void State::quarantine(std::byte *data, uint64_t bytes) {
  constexpr int kFreed = 0xdd;
  std::memset(data, kFreed, bytes);
  freed.emplace_back(data);
}

void State::run(Stream &stream, const Marker *until) {
  while (!stream.queue.empty() && !(until && !until->stream)) {
    const Work work = std::move(stream.queue.front());
    stream.queue.pop_front();
    ++ticks;
    work();
  }
}

cudaError_t State::add(cudaStream_t handle, Work work) {
  Stream &on = stream(handle);
  if (!on.capture) {
    on.queue.push_back(std::move(work));
    return cudaSuccess;
  }
  if (on.capture->invalidated)
    return cudaErrorStreamCaptureInvalidated;
  on.capture->nodes.push_back(std::move(work));
  return cudaSuccess;
}

Capture *State::captureOfThread() {
  for (const Stream *stream : streams)
    if (stream->capture && stream->capture->thread == std::this_thread::get_id())
      return stream->capture.get();
  return nullptr;
}

cudaError_t State::refuseInCapture() {
  Capture *const capture = captureOfThread();
  if (!capture)
    return cudaSuccess;
  capture->invalidated = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t State::begin(const char *function) {
  calls.emplace_back(function);
  if (sticky != cudaSuccess)
    return sticky;
  for (auto fault = faults.begin(); fault != faults.end(); ++fault) {
    if (fault->function != function || --fault->callsLeft > 0)
      continue;
    const cudaError_t error = fault->error;
    if (fault->sticky)
      sticky = error;
    faults.erase(fault);
    return error;
  }
  return cudaSuccess;
}

void reset(uint64_t deviceBytes) {
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  state.deviceBytes = deviceBytes;
  state.faults.clear();
  state.calls.clear();
  state.destroyed.clear();
  state.freed.clear();
  state.sticky = cudaSuccess;
  lastError = cudaSuccess;
}

uint64_t allocatedBytes() {
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  uint64_t bytes = state.allocatedOnDevice();
  for (const auto &[address, size] : state.pinned)
    bytes += size;
  return bytes;
}

size_t liveHandles() {
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  return state.streams.size() + state.events.size() + state.graphs.size();
}

void failCall(std::string function, int nth, cudaError_t error, bool sticky) {
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  state.faults.push_back({std::move(function), nth, error, sticky});
}

std::vector<std::string> calls() {
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  return state.calls;
}

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  return api(__func__, [&](State &state) { return state.add(stream, std::move(work)); });
}

} // namespace cgc::test::fake_cuda

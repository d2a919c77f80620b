// The fake GPU's state, and the functions of tests that set it up and look at it.
#include "tests/fake_cuda/state.h"

namespace cgc::test::fake_cuda {

State &State::get() {
  // Never destroyed, because CUDA handles in static storage may outlive it.
  static State *state = new State;
  return *state;
}

namespace {

/// Drops the work of a stream, which may refer to the stream itself.
void drop(Stream &stream) {
  stream.queue.clear();
  stream.completed = stream.enqueued;
}

} // namespace

State::State() {
  setUp({});
}

void State::setUp(const Machine &machine) {
  deviceCount = machine.devices;
  while (int(devices.size()) < machine.devices) {
    Device &device = devices.emplace_back();
    device.legacy = std::make_shared<Stream>();
    device.legacy->device = int(devices.size()) - 1;
    device.legacy->isLegacy = true;
  }
  for (Device &device : devices) {
    device.bytes = machine.deviceBytes;
    device.peers.clear();
    device.sharedLimits.clear();
  }
  random.seed(machine.seed);
  execBytes = machine.execBytes;
  major = machine.major;
  faults.clear();
  calls.clear();
  for (const std::shared_ptr<Stream> &stream : destroyedStreams)
    drop(*stream);
  destroyedStreams.clear();
  freed.clear();
  freedBytes = 0;
  sticky = cudaSuccess;
}

void reset(Machine machine) {
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  state.setUp(machine);
  thisThread = {};
}

void setDeviceBytes(int device, uint64_t bytes) {
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  state.devices.at(device).bytes = bytes;
}

uint64_t allocatedBytes() {
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  uint64_t bytes = 0;
  for (const auto &[address, allocation] : state.allocations)
    bytes += allocation.bytes;
  for (const auto &[address, exec] : state.execs)
    bytes += exec->bytes;
  return bytes;
}

uint64_t allocatedBytes(int device) {
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  return state.allocatedOn(device);
}

size_t liveHandles() {
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  return state.streams.size() + state.events.size() + state.graphs.size() + state.execs.size() +
         state.userObjects.size() + state.physical.size();
}

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  return api(__func__, stream, [&](State &state) {
    KernelLaunch launch;
    launch.device = thisThread.device;
    launch.hostCode = std::move(work);
    return state.submit(stream, std::move(launch));
  });
}

} // namespace cgc::test::fake_cuda

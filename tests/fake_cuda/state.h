// State: all state of the fake GPU, and api(), the prologue of every function of its API.
#pragma once

#include "tests/fake_cuda/fake_cuda.h"
#include "tests/fake_cuda/graph.h"
#include "tests/fake_cuda/streams.h"

#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>

namespace cgc::test::fake_cuda {

struct Device {
  uint64_t bytes = 0;
  std::shared_ptr<Stream> legacy;
  std::set<int> peers;                      ///< Devices whose memory its kernels may access.
  std::map<const void *, int> sharedLimits; ///< cudaFuncAttributeMaxDynamicSharedMemorySize.
};

struct Allocation {
  uint64_t bytes;
  int device; ///< For pinned host memory, the current one of that time.
  bool isPinned;
  bool isManaged = false; ///< The host and every device may access it.
};

struct Free {
  void operator()(std::byte *data) const { std::free(data); }
};

/// A call that is to fail.
struct Fault {
  std::string function; ///< Empty: any.
  int callsLeft;
  cudaError_t error;
  bool isSticky;
};

struct State {
  std::mutex mutex; ///< Of everything. A host function runs without it.
  std::condition_variable_any progressed;

  std::deque<Device> devices; ///< The first `deviceCount` exist.
  int deviceCount = 0;
  std::map<std::byte *, Allocation> allocations;
  /// Freed memory with its sizes, the oldest first, kept from being reused.
  std::deque<std::pair<std::unique_ptr<std::byte, Free>, uint64_t>> freed;
  uint64_t freedBytes = 0;
  uint64_t execBytes = 0; ///< Machine::execBytes.
  int major = 9;          ///< Machine::major.

  std::map<Stream *, std::shared_ptr<Stream>> streams;
  std::vector<std::shared_ptr<Stream>> destroyedStreams; ///< Which still have work.
  std::map<Event *, std::shared_ptr<Event>> events;
  std::map<Graph *, std::shared_ptr<Graph>> graphs; ///< Those that the user owns.
  std::map<GraphExec *, std::shared_ptr<GraphExec>> execs;
  std::map<UserObject *, UserObjects> userObjects; ///< The references that the user owns.
  std::vector<std::shared_ptr<Capture>> captures;  ///< Those that have not ended.
  std::unordered_set<const Graph *> allGraphs;     ///< Also captured graphs and child graphs.
  std::unordered_set<const Node *> allNodes;
  unsigned long long lastCaptureId = 0;
  /// Physical memory by handle: bytes and device. The handle stays valid until it is released; a
  /// mapping keeps its memory.
  std::map<unsigned long long, std::pair<size_t, int>> physical;

  std::vector<Fault> faults;
  std::vector<Call> calls;
  cudaError_t sticky = cudaSuccess;
  uint64_t ticks = 0; ///< Each operation takes one, a millisecond.
  std::mt19937 random;

  static State &get();
  State();
  void setUp(const Machine &machine);

  // faults.cpp
  /// Logs a call and returns the error that a fault gives it, if any.
  cudaError_t begin(const char *function, cudaStream_t stream);
  /// The entry of the running call in the log.
  Call &currentCall();

  // memory.cpp
  /// The bytes in use on a device, those of executable graphs included.
  uint64_t allocatedOn(int device) const;
  /// Whether a device has this much memory left.
  bool hasRoom(int device, uint64_t bytes) const;
  /// The allocation that [data, data + bytes) lies in; null if there is none.
  const Allocation *findAllocation(const void *data, uint64_t bytes) const;
  /// The device whose memory it is; -1 for host memory, pinned or not.
  int deviceOf(const void *data, uint64_t bytes) const;
  /// Whether it was freed and has not been reused.
  bool isFreed(const void *data) const;
  /// Whether it is managed memory, which is of the host and of a device.
  bool isManaged(const void *data, uint64_t bytes) const;
  /// Whether a kernel of `device` may access this memory.
  bool isAccessible(int device, const void *data, uint64_t bytes) const;

  // copies.cpp
  /// Sets the devices of a copy's memory. CUDA's error if the arguments are invalid.
  cudaError_t check(Copy &copy) const;
  cudaError_t check(const Fill &fill) const;

  // launch.cpp
  /// Makes a launch on the current device from CUDA's arguments, or returns CUDA's error.
  cudaError_t makeLaunch(const void *function, dim3 grid, dim3 block, size_t sharedBytes,
                         void **arguments, KernelLaunch &launch);

  // streams.cpp
  std::shared_ptr<Stream> find(cudaStream_t handle);
  std::shared_ptr<Event> find(cudaEvent_t handle);
  /// The end of a stream's work so far.
  static Point endOf(const std::shared_ptr<Stream> &stream) { return {stream, stream->enqueued}; }
  /// Appends a command. The legacy stream and blocking streams wait for each other.
  void push(const std::shared_ptr<Stream> &stream, std::function<void()> work,
            std::vector<Point> after = {});
  /// Runs the next command, or waits until another thread has run it.
  void step(Stream &stream);
  void complete(const Point &point);
  /// Runs all work of a device, the streams in random order.
  void completeDevice(int device);
  /// Runs one command of every second query that finds work, so that polling ends.
  cudaError_t query(const Point &point);

  // execute.cpp
  void execute(const Operation &operation);
  /// Enqueues or captures an operation. `isProgrammatic`: a captured launch gets programmatic edges
  /// from the launches before it.
  cudaError_t submit(cudaStream_t stream, Operation operation, bool isProgrammatic = false);

  // capture.cpp
  /// cudaErrorStreamCaptureImplicit if `stream` is the legacy stream and a blocking stream of its
  /// device captures, which invalidates that capture.
  cudaError_t refuseImplicit(const Stream &stream);
  /// For calls that CUDA calls potentially unsafe: cudaErrorStreamCaptureUnsupported if a capture
  /// forbids them to this thread, which invalidates it.
  cudaError_t refuseUnsafe();
  /// Adds to the dependencies of the next node that `stream` captures, each once.
  static void addDependencies(Stream &stream, const std::vector<Dependency> &dependencies);
  /// Takes all streams of the capture out of capture mode.
  void endCapture(const std::shared_ptr<Capture> &capture);

  // graphs.cpp
  Graph *find(cudaGraph_t handle) const;
  Node *find(cudaGraphNode_t handle) const;
  std::shared_ptr<GraphExec> find(cudaGraphExec_t handle) const; // graph_launch.cpp
};

/// The state of a thread.
struct ThreadState {
  int device = 0;
  cudaError_t lastError = cudaSuccess;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  size_t call = 0;                 ///< The index of the running call in the log.
  cudaError_t fault = cudaSuccess; ///< Of the running call.
  bool isInHostFunction = false;
  bool isInCall = false; ///< In a function of the API.
};
inline thread_local ThreadState thisThread;

template <class Handle> Handle handleOf(void *object) {
  return reinterpret_cast<Handle>(object);
}

/// Marks this thread as in a function of the API.
class CallScope final {
public:
  CallScope() : before_(std::exchange(thisThread.isInCall, true)) {}
  CallScope(const CallScope &) = delete;
  CallScope &operator=(const CallScope &) = delete;
  ~CallScope() { thisThread.isInCall = before_; }

private:
  bool before_;
};

/// Logs a call of an API function and runs its body, unless a fault replaces it. If `frees`, the
/// body runs even then. `stream`: for the log.
template <class Body>
cudaError_t call(const char *function, cudaStream_t stream, bool frees, const Body &body) {
  if (thisThread.isInHostFunction)
    return cudaErrorNotPermitted;
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  const CallScope scope;
  cudaError_t error = thisThread.fault = state.begin(function, stream);
  if (error == cudaSuccess || frees) {
    const cudaError_t done = body(state);
    error = error == cudaSuccess ? done : error;
  }
  if (error != cudaSuccess)
    thisThread.lastError = error;
  return error;
}

template <class Body> cudaError_t api(const char *function, cudaStream_t stream, const Body &body) {
  return call(function, stream, /*frees=*/false, body);
}
template <class Body> cudaError_t api(const char *function, const Body &body) {
  return call(function, nullptr, /*frees=*/false, body);
}
template <class Body> cudaError_t freeingApi(const char *function, const Body &body) {
  return call(function, nullptr, /*frees=*/true, body);
}

} // namespace cgc::test::fake_cuda

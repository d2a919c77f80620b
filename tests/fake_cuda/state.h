// The state of the fake GPU, and what every function of its API does first.
#pragma once

#include "tests/fake_cuda/fake_cuda.h"

#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

namespace cgc::test::fake_cuda {

/// One piece of work: a command of a stream, or a node of a graph.
using Work = std::function<void()>;

struct Stream;

/// A place in a stream that events stand for.
struct Marker {
  Stream *stream = nullptr; ///< Null once the work ahead of it has run.
  uint64_t tick = 0;        ///< The device's time when it ran.
};

struct Capture {
  std::thread::id thread;
  bool invalidated = false;
  std::vector<Work> nodes;
};

struct Stream {
  std::deque<Work> queue;
  std::unique_ptr<Capture> capture;
};

/// A node that records it keeps it alive.
struct Event : std::enable_shared_from_this<Event> {
  std::shared_ptr<Marker> marker;      ///< Null if it was never recorded.
  const Capture *recordedIn = nullptr; ///< The capture that its last record belongs to.
};

/// A graph and an executable graph alike: its nodes, in an order that respects its edges.
struct Graph {
  std::vector<Work> nodes;
};

struct Free {
  void operator()(std::byte *data) const { std::free(data); }
};

struct Fault {
  std::string function;
  int callsLeft;
  cudaError_t error;
  bool sticky;
};

struct State {
  std::recursive_mutex mutex;
  uint64_t deviceBytes = uint64_t(1) << 30;
  std::map<std::byte *, uint64_t> device, pinned; ///< Address -> bytes.
  /// Freed memory and destroyed streams, which late work may still touch. reset() drops them.
  std::vector<std::unique_ptr<std::byte, Free>> freed;
  std::vector<std::unique_ptr<Stream>> destroyed;
  std::set<Stream *> streams;
  std::map<Event *, std::shared_ptr<Event>> events;
  std::set<Graph *> graphs; ///< Executable ones too.
  Stream legacy;            ///< The stream of handle 0.
  std::vector<Fault> faults;
  std::vector<std::string> calls;
  cudaError_t sticky = cudaSuccess;
  uint64_t ticks = 0;

  static State &get();
  Stream &stream(cudaStream_t handle);
  uint64_t allocatedOnDevice() const;
  /// Whether [data, data + bytes) lies inside one allocation of the device.
  bool onDevice(const void *data, uint64_t bytes) const;
  bool isPinned(const void *data) const;
  /// Poisons memory that is freed and keeps it from being used again.
  void quarantine(std::byte *data, uint64_t bytes);
  /// Runs what is enqueued on `stream`, up to the place of `until` if there is one.
  void run(Stream &stream, const Marker *until = nullptr);
  /// A command, or a node if the stream is captured.
  cudaError_t add(cudaStream_t stream, Work work);
  /// The capture that this thread has open, if any.
  Capture *captureOfThread();
  /// cudaErrorStreamCaptureUnsupported, and the capture is lost, if this thread captures: for calls
  /// that CUDA calls unsafe.
  cudaError_t refuseInCapture();
  /// Counts a call; its error if it has to fail.
  cudaError_t begin(const char *function);
};

/// The last error of this thread, as cudaGetLastError reports it.
inline thread_local cudaError_t lastError = cudaSuccess;

/// Runs the body of an API function, unless a fault takes its place.
template <class Body> cudaError_t api(const char *function, const Body &body) {
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  cudaError_t error = state.begin(function);
  if (error == cudaSuccess)
    error = body(state);
  if (error != cudaSuccess)
    lastError = error;
  return error;
}

/// As api(), of a function that frees: the body runs also if the call is to fail.
template <class Body> cudaError_t freeingApi(const char *function, const Body &body) {
  State &state = State::get();
  const std::lock_guard lock(state.mutex);
  const cudaError_t fault = state.begin(function), freed = body(state);
  const cudaError_t error = fault != cudaSuccess ? fault : freed;
  if (error != cudaSuccess)
    lastError = error;
  return error;
}

} // namespace cgc::test::fake_cuda

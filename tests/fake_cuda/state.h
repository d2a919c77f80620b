// The state of the fake GPU, and the prologue of every function of its API.
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

/// One command of a stream, or one node of a graph.
using Work = std::function<void()>;

struct Stream;

/// A position in a stream, which events refer to.
struct Marker {
  Stream *stream = nullptr; ///< Null once the work before it has run.
  uint64_t tick = 0;        ///< The device's time at which it was reached.
};

/// A stream capture and the nodes that it has recorded.
struct Capture {
  std::thread::id thread;
  bool invalidated = false;
  std::vector<Work> nodes;
};

struct Stream {
  std::deque<Work> queue;
  std::unique_ptr<Capture> capture;
};

/// An event. Graph nodes that record it keep it alive.
struct Event : std::enable_shared_from_this<Event> {
  std::shared_ptr<Marker> marker;      ///< Null if it was never recorded.
  const Capture *recordedIn = nullptr; ///< The capture in which it was last recorded.
};

/// A graph or an executable graph: its nodes, in an order that respects its edges.
struct Graph {
  std::vector<Work> nodes;
};

struct Free {
  void operator()(std::byte *data) const { std::free(data); }
};

/// A call that is to fail.
struct Fault {
  std::string function;
  int callsLeft;
  cudaError_t error;
  bool sticky;
};

/// All state of the fake GPU.
struct State {
  std::recursive_mutex mutex;
  uint64_t deviceBytes = uint64_t(1) << 30;
  std::map<std::byte *, uint64_t> device, pinned; ///< Size in bytes by address.
  /// Freed memory and destroyed streams, which pending work may still access. reset() drops them.
  std::vector<std::unique_ptr<std::byte, Free>> freed;
  std::vector<std::unique_ptr<Stream>> destroyed;
  std::set<Stream *> streams;
  std::map<Event *, std::shared_ptr<Event>> events;
  std::set<Graph *> graphs; ///< Including executable graphs.
  Stream legacy;            ///< The stream of handle 0.
  std::vector<Fault> faults;
  std::vector<std::string> calls;
  cudaError_t sticky = cudaSuccess;
  uint64_t ticks = 0;

  static State &get();
  Stream &stream(cudaStream_t handle);
  uint64_t allocatedOnDevice() const;
  /// Whether [data, data + bytes) lies inside one device allocation.
  bool onDevice(const void *data, uint64_t bytes) const;
  bool isPinned(const void *data) const;
  /// Fills freed memory with a poison value and keeps it from being reused.
  void quarantine(std::byte *data, uint64_t bytes);
  /// Runs the work enqueued on `stream`, up to `until` if it is given.
  void run(Stream &stream, const Marker *until = nullptr);
  /// Appends a command to the stream, or a node to its capture.
  cudaError_t add(cudaStream_t stream, Work work);
  /// The open capture of this thread; null if there is none.
  Capture *captureOfThread();
  /// For calls that CUDA calls unsafe: if this thread captures, invalidates the capture and returns
  /// cudaErrorStreamCaptureUnsupported.
  cudaError_t refuseInCapture();
  /// Logs a call and returns the error that a fault gives it, if any.
  cudaError_t begin(const char *function);
};

/// The last error of this thread, as cudaGetLastError reports it.
inline thread_local cudaError_t lastError = cudaSuccess;

/// Runs the body of an API function unless a fault replaces it.
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

/// Like api(), for a function that frees: the body runs even if a fault makes the call fail.
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

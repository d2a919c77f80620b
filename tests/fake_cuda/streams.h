// Stream, Event and Capture.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace cgc::test::fake_cuda {

struct Capture;
struct Node;
struct Stream;
class Graph;

/// An edge of a graph, from `node`.
struct Dependency {
  Node *node;
  cudaGraphEdgeData data = {};
};

/// The work of a stream up to a position.
struct Point {
  std::shared_ptr<Stream> stream; ///< Null: no work.
  uint64_t position = 0;          ///< The number of commands.
  bool isDone() const;
};

/// Work that runs once other work is done.
struct Command {
  std::vector<Point> after;
  std::function<void()> work;
};

struct Stream {
  int device = 0;
  bool isLegacy = false;
  bool isBlocking = true; ///< Synchronizes with the legacy stream.
  std::deque<Command> queue;
  uint64_t enqueued = 0, completed = 0; ///< Commands.
  bool isBusy = false;                  ///< A thread runs a command.
  bool wasQueried = false;              ///< And nothing has run since.
  std::shared_ptr<Capture> capture;
  std::vector<Dependency> dependencies; ///< Of the next node, if it is captured.
  /// The arrays that cudaStreamGetCaptureInfo returns.
  std::vector<cudaGraphNode_t> nodeArray;
  std::vector<cudaGraphEdgeData> edgeArray;
};

inline bool Point::isDone() const {
  return !stream || stream->completed >= position;
}

/// A completed or pending record of an event.
struct Record {
  Point point;
  uint64_t tick = 0; ///< The device's time at which it completed.
};

struct Event {
  int device = 0;
  bool hasTiming = true;
  std::shared_ptr<Record> record; ///< Null if it was never recorded.
  /// The capture in which it was last recorded, also after its end, and the nodes before it.
  std::shared_ptr<Capture> capture;
  std::vector<Dependency> dependencies;
};

/// A stream capture. It lives as long as an event refers to it.
struct Capture {
  unsigned long long id = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  Stream *origin = nullptr;
  std::set<Stream *> streams; ///< All that it captures.
  std::shared_ptr<Graph> graph;
  bool isInvalidated = false, hasEnded = false;
};

} // namespace cgc::test::fake_cuda

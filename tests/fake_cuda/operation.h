// Operation: a command of a stream, or the content of a graph's node.
#pragma once

#include "tests/fake_cuda/kernel_arguments.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <variant>
#include <vector>

namespace cgc::test::fake_cuda {

struct Event;
class Graph;

/// A launch with a copy of its parameter.
struct KernelLaunch {
  const void *function = nullptr;
  dim3 grid, block;
  unsigned sharedBytes = 0;
  int device = 0;
  /// Null for host code of enqueue() and for PTX, which traps.
  std::shared_ptr<KernelArguments> arguments;
  std::function<void()> hostCode;
};

/// A copy of `height` rows of `width` bytes.
struct Copy {
  std::byte *to;
  size_t toPitch;
  const std::byte *from;
  size_t fromPitch, width, height;
  cudaMemcpyKind kind;
  int toDevice, fromDevice; ///< The devices of the memory; -1 for host memory.
  std::shared_ptr<const std::vector<std::byte>> staged; ///< The memory of `from`, if it is a copy.

  uint64_t toBytes() const { return (height - 1) * toPitch + width; }
  uint64_t fromBytes() const { return (height - 1) * fromPitch + width; }
};

/// Sets `height` rows of `width` elements to `value`.
struct Fill {
  std::byte *to;
  size_t pitch;                ///< In bytes.
  unsigned value, elementSize; ///< `elementSize` is 1, 2 or 4 bytes.
  size_t width, height;

  uint64_t bytes() const { return (height - 1) * pitch + width * elementSize; }
};

struct HostCall {
  cudaHostFn_t function;
  void *data;
};
struct ChildGraph {
  std::shared_ptr<Graph> graph;
};
struct Empty {};
struct EventWait {
  std::shared_ptr<Event> event;
};
struct EventRecord {
  std::shared_ptr<Event> event;
};

/// In the order of cudaGraphNodeType.
using Operation =
    std::variant<KernelLaunch, Copy, Fill, HostCall, ChildGraph, Empty, EventWait, EventRecord>;

inline cudaGraphNodeType typeOf(const Operation &operation) {
  return cudaGraphNodeType(operation.index());
}

} // namespace cgc::test::fake_cuda

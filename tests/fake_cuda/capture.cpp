// The fake GPU's stream captures.
#include "tests/fake_cuda/state.h"

#include <algorithm>

namespace cgc::test::fake_cuda {

cudaError_t State::refuseImplicit(const Stream &stream) {
  if (!stream.isLegacy)
    return cudaSuccess;
  cudaError_t error = cudaSuccess;
  for (const std::shared_ptr<Capture> &capture : captures)
    for (const Stream *captured : capture->streams)
      if (captured->isBlocking && captured->device == stream.device) {
        capture->isInvalidated = true;
        error = cudaErrorStreamCaptureImplicit;
      }
  return error;
}

cudaError_t State::refuseUnsafe() {
  if (thisThread.mode == cudaStreamCaptureModeRelaxed)
    return cudaSuccess;
  cudaError_t error = cudaSuccess;
  for (const std::shared_ptr<Capture> &capture : captures) {
    const bool isLocal = capture->thread == std::this_thread::get_id();
    if (isLocal ? capture->mode != cudaStreamCaptureModeRelaxed
                : capture->mode == cudaStreamCaptureModeGlobal &&
                      thisThread.mode == cudaStreamCaptureModeGlobal) {
      capture->isInvalidated = true;
      error = cudaErrorStreamCaptureUnsupported;
    }
  }
  return error;
}

void State::addDependencies(Stream &stream, const std::vector<Dependency> &dependencies) {
  for (const Dependency &d : dependencies)
    if (std::ranges::find(stream.dependencies, d.node, &Dependency::node) ==
        stream.dependencies.end())
      stream.dependencies.push_back(d);
}

void State::endCapture(const std::shared_ptr<Capture> &capture) {
  for (Stream *stream : capture->streams) {
    stream->capture = nullptr;
    stream->dependencies.clear();
  }
  capture->streams.clear();
  capture->hasEnded = true;
  std::erase(captures, capture);
}

namespace {

/// Whether every captured stream has been joined to the one that began the capture.
bool isJoined(const Capture &capture) {
  for (const Stream *stream : capture.streams)
    for (const Dependency &d : stream->dependencies)
      if (!reaches(capture.origin->dependencies, d.node))
        return false;
  return true;
}

cudaError_t endCapture(State &state, cudaStream_t handle, cudaGraph_t *result) {
  *result = nullptr;
  const std::shared_ptr<Stream> stream = state.find(handle);
  if (!stream)
    return cudaErrorInvalidResourceHandle;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture)
    return cudaErrorIllegalState;
  if (capture->origin != stream.get()) {
    capture->isInvalidated = true;
    return cudaErrorStreamCaptureUnmatched;
  }
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id())
    return cudaErrorStreamCaptureWrongThread;
  const bool joined = isJoined(*capture);
  state.endCapture(capture);
  const std::shared_ptr<Graph> graph = std::move(capture->graph);
  if (capture->isInvalidated)
    return cudaErrorStreamCaptureInvalidated;
  if (!joined)
    return cudaErrorStreamCaptureUnjoined;
  if (thisThread.fault != cudaSuccess)
    return thisThread.fault;
  state.currentCall().allocates = true;
  state.graphs.emplace(graph.get(), graph);
  *result = handleOf<cudaGraph_t>(graph.get());
  return cudaSuccess;
}

cudaStreamCaptureStatus statusOf(const Stream &stream) {
  return !stream.capture                 ? cudaStreamCaptureStatusNone
         : stream.capture->isInvalidated ? cudaStreamCaptureStatusInvalidated
                                         : cudaStreamCaptureStatusActive;
}

} // namespace
} // namespace cgc::test::fake_cuda

using namespace cgc::test::fake_cuda;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return api(__func__, handle, [&](State &state) {
    const std::shared_ptr<Stream> stream = state.find(handle);
    if (!stream)
      return cudaErrorInvalidResourceHandle;
    if (stream->isLegacy)
      return cudaErrorStreamCaptureUnsupported;
    if (stream->capture)
      return cudaErrorIllegalState;
    const auto capture = std::make_shared<Capture>();
    capture->id = ++state.lastCaptureId;
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->origin = stream.get();
    capture->streams = {stream.get()};
    capture->graph = std::make_shared<Graph>();
    stream->capture = capture;
    stream->dependencies.clear();
    state.captures.push_back(capture);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *result) {
  // The capture ends even if a fault makes the call fail.
  return call(__func__, stream, /*frees=*/true,
              [&](State &state) { return endCapture(state, stream, result); });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
  return api(__func__, [&](State &) {
    std::swap(*mode, thisThread.mode);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status) {
  return api(__func__, handle, [&](State &state) {
    const std::shared_ptr<Stream> stream = state.find(handle);
    if (!stream)
      return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = state.refuseImplicit(*stream); error != cudaSuccess)
      return error;
    *status = statusOf(*stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *count) {
  return api(__func__, handle, [&](State &state) {
    const std::shared_ptr<Stream> stream = state.find(handle);
    if (!stream)
      return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = state.refuseImplicit(*stream); error != cudaSuccess)
      return error;
    *status = statusOf(*stream);
    if (*status != cudaStreamCaptureStatusActive)
      return cudaSuccess;
    if (id)
      *id = stream->capture->id;
    if (graph)
      *graph = handleOf<cudaGraph_t>(stream->capture->graph.get());
    // The arrays live until the stream's next call, as CUDA says.
    stream->nodeArray.clear();
    stream->edgeArray.clear();
    for (const Dependency &d : stream->dependencies) {
      stream->nodeArray.push_back(handleOf<cudaGraphNode_t>(d.node));
      stream->edgeArray.push_back(d.data);
    }
    if (dependencies)
      *dependencies = stream->nodeArray.data();
    if (edges)
      *edges = stream->edgeArray.data();
    if (count)
      *count = stream->nodeArray.size();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t handle, cudaGraphNode_t *nodes,
                                                const cudaGraphEdgeData *edges, size_t count,
                                                unsigned flags) {
  return api(__func__, handle, [&](State &state) {
    const std::shared_ptr<Stream> stream = state.find(handle);
    if (!stream)
      return cudaErrorInvalidResourceHandle;
    if (!stream->capture)
      return cudaErrorIllegalState;
    std::vector<Dependency> dependencies;
    for (size_t i = 0; i < count; ++i) {
      Node *const node = state.find(nodes[i]);
      if (!node || node->graph != stream->capture->graph.get())
        return cudaErrorInvalidValue;
      dependencies.push_back({node, edges ? edges[i] : cudaGraphEdgeData{}});
    }
    if (flags & cudaStreamSetCaptureDependencies)
      stream->dependencies.clear();
    State::addDependencies(*stream, dependencies);
    return cudaSuccess;
  });
}

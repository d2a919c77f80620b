// The fake GPU's stream captures and graphs.
#include "tests/fake_cuda/state.h"

using namespace cgc::test::fake_cuda;

namespace {

Graph *graphOf(void *handle) {
  return static_cast<Graph *>(handle);
}

Graph *makeGraph(State &state, std::vector<Work> nodes) {
  auto *graph = new Graph{std::move(nodes)};
  state.graphs.insert(graph);
  return graph;
}

cudaError_t destroyGraph(State &state, Graph *graph) {
  if (state.graphs.erase(graph) == 0)
    return cudaErrorInvalidValue;
  delete graph;
  return cudaSuccess;
}

} // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  return api(__func__, [&](State &state) {
    Stream &stream = state.stream(handle);
    if (!handle)
      return cudaErrorStreamCaptureUnsupported; // The legacy stream cannot be captured.
    if (stream.capture)
      return cudaErrorIllegalState;
    stream.capture = std::make_unique<Capture>();
    stream.capture->thread = std::this_thread::get_id();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *result) {
  // The capture ends even if a fault makes the call fail.
  return freeingApi(__func__, [&](State &state) {
    *result = nullptr;
    const std::unique_ptr<Capture> capture = std::move(state.stream(handle).capture);
    if (!capture)
      return cudaErrorIllegalState;
    for (const auto &[handle, event] : state.events)
      if (event->recordedIn == capture.get())
        event->recordedIn = nullptr;
    if (capture->thread != std::this_thread::get_id())
      return cudaErrorStreamCaptureWrongThread;
    if (capture->invalidated)
      return cudaErrorStreamCaptureInvalidated;
    *result = reinterpret_cast<cudaGraph_t>(makeGraph(state, std::move(capture->nodes)));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status) {
  return api(__func__, [&](State &state) {
    const Capture *const capture = state.stream(handle).capture.get();
    *status = !capture               ? cudaStreamCaptureStatusNone
              : capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                     : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  return api(__func__, [&](State &) {
    if (nodes)
      return cudaErrorNotSupported;
    *count = graphOf(graph)->nodes.size();
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *result, cudaGraph_t graph, unsigned long long) {
  return api(__func__, [&](State &state) {
    *result = reinterpret_cast<cudaGraphExec_t>(makeGraph(state, graphOf(graph)->nodes));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  return api(__func__, [](State &) { return cudaSuccess; });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return api(__func__, [&](State &state) {
    for (const Work &node : graphOf(exec)->nodes)
      if (const cudaError_t error = state.add(stream, node); error != cudaSuccess)
        return error;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return freeingApi(__func__, [&](State &state) { return destroyGraph(state, graphOf(graph)); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return freeingApi(__func__, [&](State &state) { return destroyGraph(state, graphOf(exec)); });
}

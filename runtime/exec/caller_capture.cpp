// Captures of a caller's stream: their state, child graphs and order.
#include "runtime/exec/caller_capture.h"

#include <algorithm>

namespace cgc {

Result<std::optional<StreamCapture>> captureOf(cudaStream_t stream) {
  // CUDA cannot capture this stream, and may refuse the question while it captures others.
  if (stream == cudaStreamLegacy)
    return std::optional<StreamCapture>();
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  StreamCapture capture;
  const cudaGraphNode_t *nodes = nullptr;
  const cudaGraphEdgeData *edges = nullptr; // Without it, CUDA refuses programmatic edges.
  size_t count = 0;
  CGC_TRY(CGC_CUDA(cudaStreamGetCaptureInfo(stream, &status, &capture.id, &capture.graph, &nodes,
                                            &edges, &count),
                   "cannot ask whether the stream is being captured"));
  if (status == cudaStreamCaptureStatusNone)
    return std::optional<StreamCapture>();
  if (status != cudaStreamCaptureStatusActive)
    return Status(Code::Usage, "the stream is in a capture that an earlier call has made invalid; "
                               "end it with cudaStreamEndCapture");
  capture.nodes.assign(nodes, nodes + count);
  return std::optional(std::move(capture));
}

namespace {

/// captureOf() for a stream that is known to be capturing.
Result<StreamCapture> activeCapture(cudaStream_t stream) {
  CGC_ASSIGN_OR_RETURN(std::optional<StreamCapture> capture, captureOf(stream));
  if (!capture)
    return Status(Code::Usage, "the capture of the stream has ended during the call");
  return *std::move(capture);
}

} // namespace

Status addChildGraph(cudaStream_t stream, cudaGraph_t child) {
  CGC_ASSIGN_OR_RETURN(const StreamCapture capture, activeCapture(stream));
  cudaGraphNode_t node = nullptr;
  CGC_TRY(CGC_CUDA(cudaGraphAddChildGraphNode(&node, capture.graph, capture.nodes.data(),
                                              capture.nodes.size(), child),
                   "cannot add the graph to the caller's"));
  return CGC_CUDA(cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1,
                                                      cudaStreamSetCaptureDependencies),
                  "cannot add the graph to the capture");
}

Status CaptureOrder::follow(cudaStream_t stream) {
  CGC_ASSIGN_OR_RETURN(const StreamCapture capture, activeCapture(stream));
  if (capture.id != capture_)
    return Status::ok();
  std::vector<cudaGraphNode_t> missing;
  for (const cudaGraphNode_t node : last_)
    if (std::ranges::find(capture.nodes, node) == capture.nodes.end())
      missing.push_back(node);
  if (missing.empty())
    return Status::ok();
  return CGC_CUDA(cudaStreamUpdateCaptureDependencies(stream, missing.data(), nullptr,
                                                      missing.size(),
                                                      cudaStreamAddCaptureDependencies),
                  "cannot put the run after the last one of the capture");
}

Status CaptureOrder::mark(cudaStream_t stream) {
  CGC_ASSIGN_OR_RETURN(StreamCapture capture, activeCapture(stream));
  capture_ = capture.id;
  last_ = std::move(capture.nodes);
  return Status::ok();
}

} // namespace cgc

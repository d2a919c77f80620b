// Captures of a caller's stream, to which runs add nodes.
#pragma once

#include "runtime/exec/cuda_support.h"

#include <optional>
#include <vector>

namespace cgc {

/// A capture that a stream takes part in.
struct StreamCapture {
  unsigned long long id = 0;          ///< Unique in the process.
  cudaGraph_t graph = nullptr;        ///< The caller's, which the capture adds nodes to.
  std::vector<cudaGraphNode_t> nodes; ///< Those that the stream's next node depends on.
};

/// The capture of `stream`; nothing if the stream is not being captured. Usage if the capture is
/// invalid.
Result<std::optional<StreamCapture>> captureOf(cudaStream_t stream);

/// Adds a copy of `child` to the capture of `stream`, after what the stream has captured.
Status addChildGraph(cudaStream_t stream, cudaGraph_t child);

/// Allows this thread, for the object's lifetime, calls such as cudaGraphInstantiate that a capture
/// in global mode on any thread would otherwise refuse and that would make that capture invalid
/// (cudaThreadExchangeStreamCaptureMode). For calls that touch no stream that is being captured.
class RelaxedCaptureMode final {
public:
  RelaxedCaptureMode() { exchange(); }
  RelaxedCaptureMode(const RelaxedCaptureMode &) = delete;
  RelaxedCaptureMode &operator=(const RelaxedCaptureMode &) = delete;
  ~RelaxedCaptureMode() { exchange(); }

private:
  void exchange() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// The order of runs on the same memory in one capture, on whichever of its streams.
class CaptureOrder final {
public:
  /// Makes the next node of `stream` depend on the last run of the same capture.
  Status follow(cudaStream_t stream);
  /// Marks the end of a run on `stream`.
  Status mark(cudaStream_t stream);

private:
  unsigned long long capture_ = 0; ///< That of the last run.
  std::vector<cudaGraphNode_t> last_;
};

} // namespace cgc

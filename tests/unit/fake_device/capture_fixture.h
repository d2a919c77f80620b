// The fixture of the tests of the fake GPU's stream captures.
#pragma once

#include "tests/unit/fake_device/fake_cuda_test.h"

namespace cgc::test {

class FakeCapture : public FakeCuda {
protected:
  static void begin(cudaStream_t on,
                    cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
    ASSERT_EQ(cudaStreamBeginCapture(on, mode), cudaSuccess);
  }
  /// Ends the capture and returns its error. A failed capture gives no graph.
  cudaError_t end(cudaStream_t on) {
    cudaGraph_t graph = nullptr;
    const cudaError_t error = cudaStreamEndCapture(on, &graph);
    EXPECT_EQ(error == cudaSuccess, graph != nullptr);
    captured_ = graph ? keep(graph) : nullptr;
    return error;
  }
  static cudaStreamCaptureStatus status(cudaStream_t of) {
    cudaStreamCaptureStatus status = {};
    EXPECT_EQ(cudaStreamIsCapturing(of, &status), cudaSuccess);
    return status;
  }
  void record(cudaEvent_t e, cudaStream_t on) { ASSERT_EQ(cudaEventRecord(e, on), cudaSuccess); }
  static void wait(cudaStream_t on, cudaEvent_t e) {
    ASSERT_EQ(cudaStreamWaitEvent(on, e, 0), cudaSuccess);
  }
  void replay() {
    const cudaStream_t on = stream();
    ASSERT_EQ(cudaGraphLaunch(instantiate(captured_), on), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(on), cudaSuccess);
  }
  cudaGraph_t captured_ = nullptr;
};

} // namespace cgc::test

// profileRecords: times each record by the host's clock or by events inside a CUDA graph.
#include "runtime/exec/executors.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace cgc {
namespace {

using Times = std::vector<std::vector<double>>;

Result<Times> profileOnHost(const std::vector<BoundRecord> &records, OpProvider *provider,
                            size_t runs) {
  using Clock = std::chrono::steady_clock;
  Times times(records.size());
  for (size_t run = 0; run < runs; ++run) {
    auto last = Clock::now();
    CGC_TRY(enqueueAll(records, DeviceKind::Cpu, provider, nullptr, [&](size_t i) {
      const auto now = Clock::now();
      times[i].push_back(std::chrono::duration<double, std::micro>(now - last).count());
      last = Clock::now();
      return Status::ok();
    }));
  }
  return times;
}

/// Records `event` on `stream`. Under capture the record becomes a graph node.
Status mark(cudaEvent_t event, cudaStream_t stream) {
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  CGC_TRY(CGC_CUDA(cudaStreamIsCapturing(stream, &capturing), "cannot look at the stream"));
  const unsigned flags =
      capturing == cudaStreamCaptureStatusActive ? cudaEventRecordExternal : cudaEventRecordDefault;
  return CGC_CUDA(cudaEventRecordWithFlags(event, stream, flags), "cannot record an event");
}

Result<Times> profileInGraph(const std::vector<BoundRecord> &records, OpProvider *provider,
                             cudaStream_t stream, size_t runs) {
  std::vector<CudaEvent> events; // One before the first record and one after each.
  events.reserve(records.size() + 1);
  for (size_t i = 0; i <= records.size(); ++i) {
    cudaEvent_t event = nullptr;
    CGC_TRY(CGC_CUDA(cudaEventCreate(&event), "cannot create an event"));
    events.emplace_back(event);
  }
  const auto enqueueRun = [&]() -> Status {
    CGC_TRY(mark(events[0].get(), stream));
    return enqueueAll(records, DeviceKind::Cuda, provider, stream,
                      [&](size_t i) { return mark(events[i + 1].get(), stream); });
  };
  CGC_TRY(GraphExecutor::warmUp(enqueueRun, stream));
  std::optional<GraphExecutor> graph;
  // A graph cannot call functions of the host; the records are launched one by one then.
  if (std::ranges::none_of(records, callsHost)) {
    CGC_ASSIGN_OR_RETURN(graph, GraphExecutor::capture(enqueueRun, provider, stream));
  }
  Times times(records.size());
  for (size_t run = 0; run < runs; ++run) {
    CGC_TRY(graph ? graph->run(stream) : enqueueRun());
    CGC_TRY(CGC_CUDA(cudaStreamSynchronize(stream), "the profiled run failed"));
    for (size_t i = 0; i < records.size(); ++i) {
      float millis = 0;
      CGC_TRY(CGC_CUDA(cudaEventElapsedTime(&millis, events[i].get(), events[i + 1].get()),
                       "cannot read the time between two events"));
      times[i].push_back(millis * 1e3);
    }
  }
  return times;
}

} // namespace

Result<Times> profileRecords(const std::vector<BoundRecord> &records, DeviceKind device,
                             OpProvider *provider, cudaStream_t stream, size_t runs) {
  return device == DeviceKind::Cuda ? profileInGraph(records, provider, stream, runs)
                                    : profileOnHost(records, provider, runs);
}

} // namespace cgc

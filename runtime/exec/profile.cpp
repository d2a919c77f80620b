// profileRecords and spansOfRecords: time records by the host's clock or by events in a CUDA graph.
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

Result<std::vector<CudaEvent>> createTimedEvents(size_t count) {
  std::vector<CudaEvent> events;
  for (size_t i = 0; i < count; ++i) {
    cudaEvent_t event = nullptr;
    CGC_TRY(CGC_CUDA(cudaEventCreate(&event), "cannot create an event"));
    events.emplace_back(event);
  }
  return events;
}

Result<double> microsBetween(const CudaEvent &begin, const CudaEvent &end) {
  float millis = 0;
  CGC_TRY(CGC_CUDA(cudaEventElapsedTime(&millis, begin.get(), end.get()),
                   "cannot read the time between two events"));
  return millis * 1e3;
}

/// Replays what `enqueueRun` enqueues on `stream` and `branches`, and calls `read` after each run.
Status replay(const std::vector<BoundRecord> &records, OpProvider *provider, cudaStream_t stream,
              std::span<const cudaStream_t> branches, size_t runs,
              const std::function<Status()> &enqueueRun, const std::function<Status()> &read) {
  CGC_TRY(GraphExecutor::warmUp(enqueueRun, stream));
  std::optional<GraphExecutor> graph;
  // A graph cannot call functions of the host; the records are launched one by one then.
  if (std::ranges::none_of(records, callsHost)) {
    CGC_ASSIGN_OR_RETURN(graph, GraphExecutor::capture(enqueueRun, provider, stream, branches));
  }
  for (size_t run = 0; run < runs; ++run) {
    CGC_TRY(graph ? graph->run(stream) : enqueueRun());
    CGC_TRY(CGC_CUDA(cudaStreamSynchronize(stream), "the profiled run failed"));
    CGC_TRY(read());
  }
  return Status::ok();
}

Result<Times> profileInGraph(const std::vector<BoundRecord> &records, OpProvider *provider,
                             cudaStream_t stream, size_t runs) {
  // One before the first record and one after each.
  CGC_ASSIGN_OR_RETURN(const auto events, createTimedEvents(records.size() + 1));
  const auto enqueueRun = [&]() -> Status {
    CGC_TRY(mark(events[0].get(), stream));
    return enqueueAll(records, DeviceKind::Cuda, provider, stream,
                      [&](size_t i) { return mark(events[i + 1].get(), stream); });
  };
  Times times(records.size());
  CGC_TRY(replay(records, provider, stream, {}, runs, enqueueRun, [&]() -> Status {
    for (size_t i = 0; i < records.size(); ++i) {
      CGC_ASSIGN_OR_RETURN(times[i].emplace_back(), microsBetween(events[i], events[i + 1]));
    }
    return Status::ok();
  }));
  return times;
}

/// The records one after another, each as long as these times say.
std::vector<std::vector<RecordSpan>> endToEnd(const Times &times, size_t runs) {
  std::vector<std::vector<RecordSpan>> spans(times.size());
  for (size_t run = 0; run < runs; ++run) {
    double at = 0;
    for (size_t i = 0; i < times.size(); ++i) {
      spans[i].push_back({at, at + times[i][run]});
      at = spans[i].back().end;
    }
  }
  return spans;
}

} // namespace

Result<Times> profileRecords(const std::vector<BoundRecord> &records, DeviceKind device,
                             OpProvider *provider, cudaStream_t stream, size_t runs) {
  return device == DeviceKind::Cuda ? profileInGraph(records, provider, stream, runs)
                                    : profileOnHost(records, provider, runs);
}

Result<std::vector<std::vector<RecordSpan>>> spansOfRecords(const std::vector<BoundRecord> &records,
                                                            DeviceKind device, OpProvider *provider,
                                                            const BranchStreams &branches,
                                                            cudaStream_t stream, size_t runs) {
  if (device == DeviceKind::Cpu) {
    CGC_ASSIGN_OR_RETURN(const Times times, profileOnHost(records, provider, runs));
    return endToEnd(times, runs);
  }
  CGC_ASSIGN_OR_RETURN(const auto start, createTimedEvents(1));
  CGC_ASSIGN_OR_RETURN(const auto begins, createTimedEvents(records.size()));
  CGC_ASSIGN_OR_RETURN(const auto ends, createTimedEvents(records.size()));
  const RecordHooks hooks{
      .before = [&](size_t i, cudaStream_t on) { return mark(begins[i].get(), on); },
      .after = [&](size_t i, cudaStream_t on) { return mark(ends[i].get(), on); }};
  const auto enqueueRun = [&]() -> Status {
    CGC_TRY(mark(start[0].get(), stream));
    return branches.enqueue(records, provider, stream, hooks);
  };
  std::vector<std::vector<RecordSpan>> spans(records.size());
  CGC_TRY(replay(records, provider, stream, branches.streams(), runs, enqueueRun, [&]() -> Status {
    for (size_t i = 0; i < records.size(); ++i) {
      RecordSpan &span = spans[i].emplace_back();
      CGC_ASSIGN_OR_RETURN(span.begin, microsBetween(start[0], begins[i]));
      CGC_ASSIGN_OR_RETURN(span.end, microsBetween(start[0], ends[i]));
    }
    return Status::ok();
  }));
  return spans;
}

} // namespace cgc

// SplitExecutor: splits records at host calls.
#include "runtime/exec/split_executor.h"

#include <algorithm>

namespace cgc {
namespace {

/// The first host call at or after record `from`; the number of records if there is none.
size_t nextHostCall(const std::vector<BoundRecord> &records, size_t from) {
  return std::find_if(records.begin() + from, records.end(), callsHost) - records.begin();
}

/// Whether a record among `records` writes elements. Others capture no node.
bool writesElements(std::span<const LaunchRecord> records, const Bucket &bucket) {
  return std::ranges::any_of(records, [&](const LaunchRecord &record) {
    return std::ranges::any_of(recordWrites(record), [&](TensorId id) {
      return *tensorExtent(bucket.tensors[uint32_t(id)]) > 0;
    });
  });
}

} // namespace

Status SplitExecutor::warmUp(const std::vector<BoundRecord> &records, OpProvider *provider,
                             cudaStream_t stream) {
  const auto enqueueRun = [&]() -> Status {
    for (size_t begin = 0; begin < records.size();) {
      const size_t end = nextHostCall(records, begin);
      CGC_TRY(enqueueAll(std::span(records).subspan(begin, end - begin), DeviceKind::Cuda, provider,
                         stream));
      if (end < records.size())
        for (const TensorView &result : std::get<BoundHostCall>(records[end].op).writes)
          CGC_TRY(CGC_CUDA(
              cudaMemsetAsync(result.data, 0, *tensorBytes(result.dtype, result.sizes), stream),
              "cannot clear the results of a host call"));
      begin = end + 1;
    }
    return Status::ok();
  };
  return GraphExecutor::warmUp(enqueueRun, stream);
}

Result<SplitExecutor> SplitExecutor::capture(const std::vector<BoundRecord> &records,
                                             const Bucket &bucket, OpProvider *provider,
                                             cudaStream_t stream) {
  SplitExecutor executor;
  for (size_t begin = 0; begin < records.size();) {
    const size_t end = nextHostCall(records, begin);
    if (writesElements(std::span(bucket.records).subspan(begin, end - begin), bucket)) {
      const auto enqueuePart = [&] {
        return enqueueAll(std::span(records).subspan(begin, end - begin), DeviceKind::Cuda,
                          provider, stream);
      };
      CGC_ASSIGN_OR_RETURN(GraphExecutor graph,
                           GraphExecutor::capture(enqueuePart, provider, stream));
      executor.steps_.emplace_back(std::move(graph));
    }
    if (end < records.size())
      executor.steps_.emplace_back(&records[end]);
    begin = end + 1;
  }
  return executor;
}

Status SplitExecutor::run(cudaStream_t stream) {
  for (auto &step : steps_) {
    if (auto *graph = std::get_if<GraphExecutor>(&step)) {
      CGC_TRY(graph->run(stream));
      continue;
    }
    const BoundRecord &call = *std::get<const BoundRecord *>(step);
    if (Status status = enqueue(call, DeviceKind::Cuda, stream); !status.isOk())
      return status.withContext(call.name);
  }
  return Status::ok();
}

size_t SplitExecutor::nodes() const {
  size_t nodes = 0;
  for (const auto &step : steps_)
    if (const auto *graph = std::get_if<GraphExecutor>(&step))
      nodes += graph->nodes();
  return nodes;
}

double SplitExecutor::captureMillis() const {
  double millis = 0;
  for (const auto &step : steps_)
    if (const auto *graph = std::get_if<GraphExecutor>(&step))
      millis += graph->captureMillis();
  return millis;
}

} // namespace cgc

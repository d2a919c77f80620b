// Load: client threads that send requests, and the same requests back to back.
#include "tools/cgc/load/load.h"

#include "runtime/exec/cuda_support.h"
#include "tools/cgc/load/arrivals.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include <sys/prctl.h>

namespace cgc::tool {
namespace {

double secondsBetween(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

} // namespace

/// What one client thread measured.
struct Load::Client {
  std::vector<double> latency;
  std::vector<size_t> succeeded;
  std::array<uint64_t, kNumCodes> failuresByCode = {};
  std::string firstFailure;
};

size_t LoadFigures::requests() const {
  return std::accumulate(succeeded.begin(), succeeded.end(), size_t(0)) + failures();
}

uint64_t LoadFigures::failures() const {
  return std::accumulate(failuresByCode.begin(), failuresByCode.end(), uint64_t(0));
}

Result<Load> Load::create(Session &session, std::vector<RequestKind> kinds, LoadOptions options) {
  Load load(session, std::move(kinds), options);
  const auto guardOf = [&](int device) {
    return DeviceGuard(options.tensors == DeviceKind::Cuda ? device : -1);
  };
  for (int device = 0; device < options.devices; ++device) {
    const DeviceGuard guard = guardOf(device);
    std::vector<TargetTensors> &made = load.inputs_.emplace_back();
    for (const RequestKind &kind : *load.kinds_) {
      CGC_ASSIGN_OR_RETURN(TargetTensors inputs,
                           TargetTensors::randomInputs(options.tensors, kind.inputs));
      made.push_back(std::move(inputs));
    }
  }
  for (int client = 0; client < options.clients; ++client) {
    const DeviceGuard guard = guardOf(load.deviceOfClient(client));
    std::vector<TargetTensors> &made = load.outputs_.emplace_back();
    for (const RequestKind &kind : *load.kinds_) {
      CGC_ASSIGN_OR_RETURN(TargetTensors outputs,
                           TargetTensors::outputs(options.tensors, kind.outputs));
      made.push_back(std::move(outputs));
    }
  }
  return load;
}

Status Load::runOne(int client, size_t kind, void *stream) {
  return session_.run((*kinds_)[kind].entry, inputs_[deviceOfClient(client)][kind].views(),
                      outputs_[client][kind].views(), stream);
}

Status Load::warmUp() {
  for (int client = 0; client < options_.clients; ++client)
    for (size_t kind = 0; kind < kinds_->size(); ++kind)
      CGC_TRY(runOne(client, kind));
  return Status::ok();
}

LoadFigures Load::run(const std::function<void(const std::atomic<bool> &)> &beside) {
  const SessionStats before = session_.stats();
  std::vector<Client> clients(options_.clients);
  std::vector<std::thread> threads;
  std::atomic<bool> ended = false;
  std::thread other;
  if (beside)
    other = std::thread([&] { beside(ended); });
  const auto start = Clock::now();
  Arrivals arrivals(*kinds_, options_.rate, start, options_.seconds);
  for (int i = 0; i < options_.clients; ++i)
    threads.emplace_back([&, i] {
      // Linux wakes a thread up to 50 us late by default, which latencies would contain.
      (void)prctl(PR_SET_TIMERSLACK, 1UL);
      Client &client = clients[i];
      client.succeeded.resize(kinds_->size());
      while (const std::optional<Arrival> arrival = arrivals.next()) {
        std::this_thread::sleep_until(arrival->due);
        if (const Status status = runOne(i, arrival->kind); status.isOk()) {
          client.latency.push_back(millisSince(arrival->due));
          ++client.succeeded[arrival->kind];
        } else if (client.failuresByCode[size_t(status.code())]++ == 0 &&
                   client.firstFailure.empty()) {
          client.firstFailure = status.message();
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  LoadFigures figures;
  figures.seconds = secondsBetween(start, Clock::now());
  ended = true;
  if (other.joinable())
    other.join();
  figures.backlog = arrivals.backlog();
  figures.succeeded.resize(kinds_->size());
  std::vector<double> latency;
  for (const Client &client : clients) {
    latency.insert(latency.end(), client.latency.begin(), client.latency.end());
    for (size_t kind = 0; kind < kinds_->size(); ++kind) {
      figures.succeeded[kind] += client.succeeded[kind];
      figures.rows += client.succeeded[kind] * (*kinds_)[kind].rows;
    }
    for (size_t code = 0; code < kNumCodes; ++code)
      figures.failuresByCode[code] += client.failuresByCode[code];
    if (figures.firstFailure.empty())
      figures.firstFailure = client.firstFailure;
  }
  figures.latency = Samples(std::move(latency));
  const SessionStats after = session_.stats();
  figures.splits = after.splits - before.splits;
  figures.bucketRuns = after.bucketRuns - before.bucketRuns;
  figures.paddedRows = after.paddedRows - before.paddedRows;
  figures.waits = after.waits - before.waits;
  figures.waitMicros = after.waitMicros - before.waitMicros;
  return figures;
}

Result<BackToBack> Load::backToBack(const std::vector<size_t> &counts) {
  std::vector<size_t> order;
  for (size_t kind = 0; kind < counts.size(); ++kind)
    order.insert(order.end(), counts[kind], kind);
  std::ranges::shuffle(order, std::mt19937_64(1));
  BackToBack result{.requests = order.size()};
  for (const size_t kind : order)
    result.rows += (*kinds_)[kind].rows;

  const bool onGpus = session_.plan()->data().target == DeviceKind::Cuda;
  const int lanes = std::min(options_.clients, options_.devices);
  std::vector<CudaStream> streams(lanes);
  for (int i = 0; onGpus && i < lanes; ++i) {
    const DeviceGuard guard(i);
    CGC_ASSIGN_OR_RETURN(streams[i], createStream());
  }
  const auto start = Clock::now();
  Status status;
  for (size_t i = 0; i < order.size() && status.isOk(); ++i)
    status = runOne(int(i % lanes), order[i], streams[i % lanes].get());
  for (const CudaStream &stream : streams) // Also after a failure: the tensors are in use.
    if (stream)
      if (const Status ended =
              CGC_CUDA(cudaStreamSynchronize(stream.get()), "a request on a stream failed");
          status.isOk())
        status = ended;
  CGC_TRY(status);
  result.seconds = secondsBetween(start, Clock::now());
  return result;
}

} // namespace cgc::tool

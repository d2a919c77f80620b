// PeerBench: eager, frozen, and captured with the executor of our own plans.
#include "tools/cgc/peers.h"

#include "runtime/exec/executors.h"
#include "runtime/exec/provider.h"
#include "tools/cgc/libraries.h"
#include "tools/cgc/runner.h"

namespace cgc::tool {

Result<PeerBench> PeerBench::load(const std::string &model, const PlanData &plan) {
  PeerBench bench;
  if (plan.target == DeviceKind::Cuda) {
    // LibTorch looks for its CUDA library once: the provider opens it before anything else.
    CGC_ASSIGN_OR_RETURN(bench.provider_, loadProvider(providerPath()));
    CGC_TRY(bench.provider_->initialize(DeviceKind::Cuda, 0));
    CGC_ASSIGN_OR_RETURN(bench.stream_, createStream());
  }
  CGC_ASSIGN_OR_RETURN(const frontend::Api *frontend, openFrontend());
  CGC_ASSIGN_OR_RETURN(bench.peers_, frontend->loadPeers(model, plan.target, plan.precision));
  return bench;
}

Result<Timing> PeerBench::time(frontend::Peer &peer, int samples) {
  if (!provider_)
    return timeRuns([&] { return peer.run(false); }, [] { return Status::ok(); }, samples);
  return timeRuns(
      [&] { return provider_->onStream(stream_.get(), [&] { return peer.run(false); }); },
      [&] { return cudaStatus(cudaStreamSynchronize(stream_.get()), "LibTorch's run failed"); },
      samples);
}

Status PeerBench::capture(frontend::Peer &peer, int samples, PeerFigures &figures) {
  const auto enqueueRun = [&] {
    return provider_->onStream(stream_.get(), [&] { return peer.run(true); });
  };
  CGC_ASSIGN_OR_RETURN(GraphExecutor graph,
                       GraphExecutor::capture(enqueueRun, provider_.get(), stream_.get()));
  figures.captureMillis = graph.captureMillis();
  CGC_ASSIGN_OR_RETURN(figures.timing,
                       timeRuns([&] { return graph.run(stream_.get()); },
                                [&] {
                                  return cudaStatus(cudaStreamSynchronize(stream_.get()),
                                                    "LibTorch's graph failed");
                                },
                                samples));
  return Status::ok();
}

Result<std::vector<PeerFigures>> PeerBench::measure(const PlanBucket &bucket, int samples) {
  std::vector<HostTensor> inputs;
  for (const IoTensor &input : bucket.bucket().inputs)
    inputs.push_back(randomInput(input, inputs.size()));
  std::vector<PeerFigures> all;
  for (const auto kind : {frontend::PeerKind::Eager, frontend::PeerKind::Frozen}) {
    PeerFigures figures;
    figures.system = kind == frontend::PeerKind::Eager ? "eager" : "frozen";
    auto peer = peers_->prepare(kind, bucket.entry->name, viewsOf(inputs));
    if (!peer.isOk() && peer.status().code() == Code::Usage)
      return Status(Code::Usage,
                    peer.status().message() + "; was the plan compiled from this model?");
    auto timing = peer.isOk() ? time(**peer, samples) : Result<Timing>(peer.status());
    // Without LibTorch's eager run there is nothing to compare with.
    if (!timing.isOk() && kind == frontend::PeerKind::Eager)
      return timing.status();
    if (timing.isOk())
      figures.timing = *std::move(timing);
    else
      figures.why = timing.status().message();
    all.push_back(std::move(figures));
    if (kind == frontend::PeerKind::Frozen && provider_) {
      PeerFigures captured;
      captured.system = "captured";
      const Status status = peer.isOk() ? capture(**peer, samples, captured) : peer.status();
      if (!status.isOk())
        captured.why = status.message();
      all.push_back(std::move(captured));
    }
  }
  return all;
}

} // namespace cgc::tool

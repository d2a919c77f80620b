// PeerBench: runs eager and frozen modules; captures frozen ones with the executor of cgc's own
// plans.
#include "tools/cgc/verbs/peers.h"

#include "runtime/exec/executors.h"
#include "runtime/exec/provider.h"
#include "tools/cgc/cli/libraries.h"
#include "tools/cgc/report/plan_summary.h"
#include "tools/cgc/verbs/runner.h"

namespace cgc::tool {

const char *systemName(PeerSystem system) {
  switch (system) {
  case PeerSystem::Eager:
    return "eager";
  case PeerSystem::Frozen:
    return "frozen";
  case PeerSystem::Captured:
    return "captured";
  }
  return "";
}

std::vector<PeerSystem> PeerBench::systemsOf(DeviceKind target) {
  if (target == DeviceKind::Cuda)
    return {PeerSystem::Eager, PeerSystem::Frozen, PeerSystem::Captured};
  return {PeerSystem::Eager, PeerSystem::Frozen};
}

Result<PeerBench> PeerBench::load(const std::string &model, const PlanData &plan, int threads) {
  PeerBench bench;
  bench.threads_ = threads;
  const bool cuda = plan.target == DeviceKind::Cuda;
  if (cuda || threads > 0) {
    // LibTorch looks for its CUDA library only once, so the provider opens it before anything else.
    CGC_ASSIGN_OR_RETURN(bench.provider_, loadProvider(providerPath()));
    CGC_TRY(bench.provider_->initialize(plan.target, 0));
  }
  if (cuda) {
    CGC_ASSIGN_OR_RETURN(bench.stream_, createStream());
  }
  CGC_ASSIGN_OR_RETURN(const frontend::Api *frontend, openFrontend());
  CGC_ASSIGN_OR_RETURN(bench.peers_,
                       frontend->loadPeers(model, plan.target, plan.precision, roundsToTf32(plan)));
  return bench;
}

Result<std::unique_ptr<frontend::Peer>> PeerBench::prepare(PeerSystem system,
                                                           const PlanBucket &bucket) {
  std::vector<HostTensor> inputs;
  for (const IoTensor &input : bucket.bucket().inputs)
    inputs.push_back(randomInput(input, inputs.size()));
  return peers_->prepare(system == PeerSystem::Eager ? frontend::PeerKind::Eager
                                                     : frontend::PeerKind::Frozen,
                         bucket.entry->name, viewsOf(inputs));
}

Status PeerBench::enqueue(frontend::Peer &peer) {
  const auto run = [&] { return peer.run(false); };
  if (!provider_)
    return run();
  return stream_ ? provider_->onStream(stream_.get(), run) : provider_->withThreads(threads_, run);
}

Status PeerBench::wait() {
  return stream_ ? CGC_CUDA(cudaStreamSynchronize(stream_.get()), "LibTorch's run failed")
                 : Status::ok();
}

Status withThisModel(const Status &status) {
  const bool mayBeAnother = status.code() == Code::Usage || status.code() == Code::Failed;
  return mayBeAnother ? Status(status.code(), status.message() + "; " + kThisModel) : status;
}

Status PeerBench::check(const PlanBucket &bucket) {
  auto peer = prepare(PeerSystem::Eager, bucket);
  Status status = peer.status();
  if (status.isOk()) {
    status = enqueue(**peer);
    if (status.isOk())
      status = wait();
    status = status.withContext("LibTorch, " + bucket.entry->name);
  }
  return withThisModel(status);
}

Result<Timing> PeerBench::time(frontend::Peer &peer, int samples) {
  return timeRuns([&] { return enqueue(peer); }, [&] { return wait(); }, samples);
}

Result<Timing> PeerBench::timeCaptured(frontend::Peer &peer, int samples, double &captureMillis) {
  const auto enqueueRun = [&] {
    return provider_->onStream(stream_.get(), [&] { return peer.run(true); });
  };
  CGC_TRY(GraphExecutor::warmUp(enqueueRun, stream_.get()));
  CGC_ASSIGN_OR_RETURN(GraphExecutor graph,
                       GraphExecutor::capture(enqueueRun, provider_.get(), stream_.get()));
  captureMillis = graph.captureMillis();
  return timeRuns(
      [&] { return graph.run(stream_.get()); },
      [&] { return CGC_CUDA(cudaStreamSynchronize(stream_.get()), "LibTorch's graph failed"); },
      samples);
}

Result<PeerFigures> PeerBench::measure(PeerSystem system, const PlanBucket &bucket, int samples) {
  auto peer = prepare(system, bucket);
  PeerFigures figures{system, std::nullopt, {}, 0};
  Result<Timing> timing = !peer.isOk() ? Result<Timing>(peer.status())
                          : system == PeerSystem::Captured
                              ? timeCaptured(**peer, samples, figures.captureMillis)
                              : time(**peer, samples);
  if (timing.isOk())
    figures.timing = *std::move(timing);
  else if (system == PeerSystem::Eager) // Without eager there is nothing to compare with.
    return timing.status();
  else
    figures.why = timing.status().message();
  return figures;
}

} // namespace cgc::tool

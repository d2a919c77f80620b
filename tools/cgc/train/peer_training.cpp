// PeerTraining: gives LibTorch the plan's optimizer and first states, and times its steps.
#include "tools/cgc/train/peer_training.h"

#include "passes/train/optimizer_options.h"
#include "runtime/base/training_names.h"
#include "runtime/exec/provider.h"
#include "tools/cgc/cli/libraries.h"
#include "tools/cgc/cli/pass_flags.h"
#include "tools/cgc/cli/signals.h"
#include "tools/cgc/cli/specs.h"
#include "tools/cgc/io/tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace cgc::tool {
namespace {

/// Usage if LibTorch cannot make the step, or if a flag says something else of it.
Status checkStep(const TrainingStep &step, const PeerFlags &flags) {
  if (step.autocast == DType::F16)
    return {Code::Usage,
            "the plan was compiled with --autocast fp16, and LibTorch's training has no "
            "loss scale here; compare a plan with --autocast bf16 or without"};
  CGC_ASSIGN_OR_RETURN(const OptimizerOptions given,
                       parseOptimizer(flags.optimizer, step.optimizer));
  std::string option = findDifference(given, step.optimizer);
  if (!flags.method.empty() && flags.method != step.method)
    option = "--train";
  if (flags.loss.value_or(step.loss) != step.loss)
    option = "--loss";
  if (!flags.autocast.empty() && precisionOf(flags.autocast) != step.autocast)
    option = "--autocast";
  if (option.empty())
    return Status::ok();
  return {Code::Usage, fmt::format("{} is not as in the plan, which was compiled with {}; leave it "
                                   "out, or give it as there",
                                   option, commandText(step))};
}

bool isModelState(const State &state) {
  return state.role == StateRole::Parameter || state.role == StateRole::Buffer;
}

} // namespace

Result<PeerTraining> PeerTraining::load(const PeerFlags &flags, const PlanData &plan,
                                        const Bucket &bucket, bool onGpu, int threads) {
  PeerTraining training;
  training.plan_ = &plan;
  training.onGpu_ = onGpu;
  training.threads_ = threads;
  CGC_TRY(training.initialize(flags, bucket).withContext("--against"));
  return training;
}

Status PeerTraining::initialize(const PeerFlags &flags, const Bucket &bucket) {
  if (!plan_->training)
    return {Code::Usage, "the plan does not say which step it makes; compile it with cgc compile"};
  const TrainingStep &step = *plan_->training;
  CGC_TRY(checkStep(step, flags));
  optimizer_ = step.optimizer;
  CGC_ASSIGN_OR_RETURN(const frontend::Api *frontend, openFrontend());
  const DeviceKind device = onGpu_ ? DeviceKind::Cuda : DeviceKind::Cpu;
  if (onGpu_ || threads_ > 0) {
    // LibTorch looks for its CUDA library only once, so the provider opens it before anything else.
    CGC_ASSIGN_OR_RETURN(provider_, loadProvider(providerPath()));
    CGC_TRY(provider_->initialize(device, 0));
  }
  CGC_ASSIGN_OR_RETURN(meter_, MemoryMeter::create(onGpu_));

  frontend::TrainerPeerOptions options{.method = step.method,
                                       .loss = step.loss,
                                       .inputs = bucket.inputs.size(),
                                       .states = {},
                                       .optimizer = peerOptimizer(),
                                       .autocast = step.autocast};
  for (const State &state : plan_->states)
    if (isModelState(state))
      options.states.emplace_back(
          state.name, TensorView{nullptr, state.dtype, DeviceKind::Cpu, state.sizes, {}});
  CGC_ASSIGN_OR_RETURN(peer_, frontend->loadTrainerPeer(flags.model, device, options));
  CGC_ASSIGN_OR_RETURN(result_.ready, meter_->read());
  result_.model = flags.model;
  if (plan_->findState(kOffsetState))
    result_.notes.push_back("the step draws random numbers, and LibTorch draws others: the losses "
                            "differ");
  return Status::ok();
}

frontend::PeerOptimizer PeerTraining::peerOptimizer() const {
  using Rule = frontend::PeerOptimizer::Rule;
  frontend::PeerOptimizer result{
      .rule = optimizer_.rule == OptimizerRule::Sgd    ? Rule::Sgd
              : optimizer_.rule == OptimizerRule::Adam ? Rule::Adam
                                                       : Rule::AdamW,
      .momentum = optimizer_.momentum,
      .dampening = optimizer_.dampening,
      .nesterov = optimizer_.nesterov,
      .beta1 = optimizer_.beta1,
      .beta2 = optimizer_.beta2,
      .eps = optimizer_.eps,
      .clipNorm = optimizer_.clipNorm,
      .clipValue = optimizer_.clipValue,
      .groups = {},
      .clamps = {},
  };
  for (const ParameterGroup &group : optimizer_.groups)
    result.groups.push_back({{}, group.weightDecay.value_or(optimizer_.weightDecay)});
  result.groups.push_back({{}, optimizer_.weightDecay}); // Of all other parameters.
  for (const State &state : plan_->states) {
    if (state.role != StateRole::Parameter)
      continue;
    const auto type = ir::TensorType::dense(state.dtype, state.sizes);
    const auto group = std::ranges::find_if(optimizer_.groups, [&](const auto &one) {
      return passes::contains(one, state.name, type);
    });
    const auto index = static_cast<size_t>(group - optimizer_.groups.begin());
    result.groups[index].parameters.push_back(state.name);
  }
  for (const ParameterClamp &clamp : optimizer_.clamps)
    result.clamps.push_back({clamp.path, clamp.min, clamp.max});
  return result;
}

Status PeerTraining::start(Trainer &trainer) {
  for (const State &state : plan_->states) {
    if (!isModelState(state) && state.name != kLrState)
      continue;
    HostTensor value = makeTensor(state.name, state.dtype, state.sizes);
    CGC_TRY(trainer.read(state.name, viewOf(value)));
    if (isModelState(state)) {
      CGC_TRY(peer_->write(state.name, viewOf(value)));
      continue;
    }
    rates_.resize(value.bytes.size() / sizeof(float));
    std::memcpy(rates_.data(), value.bytes.data(), value.bytes.size());
  }
  return Status::ok();
}

Result<double> PeerTraining::step(const Batch &batch, uint64_t number) {
  std::vector<double> rates;
  for (const float rate : rates_)
    rates.push_back(rate * optimizer_.factorAt(number));
  Result<double> loss = 0.0;
  const auto run = [&] {
    loss = peer_->step(batch.inputs, rates);
    return loss.status();
  };
  CGC_TRY(provider_ && !onGpu_ ? provider_->withThreads(threads_, run) : run());
  return loss;
}

Result<PeerResult> PeerTraining::run(BatchReader &reader, uint64_t steps, uint64_t logEvery,
                                     Progress &progress) {
  using Clock = std::chrono::steady_clock;
  // The plan's memory does not count.
  CGC_ASSIGN_OR_RETURN(meter_, MemoryMeter::create(onGpu_));
  Clock::time_point first = Clock::now();
  for (uint64_t number = 1; number <= steps && requestedStop() == 0; ++number) {
    CGC_ASSIGN_OR_RETURN(const double loss, step(reader.next(), number));
    reader.release();
    result_.losses.push_back({number, loss});
    if (number == 1 && steps > 1)
      first = Clock::now(); // The first step allocates.
    if (number % logEvery == 0 || number == steps) {
      const std::string text = fmt::format("LibTorch, step {}, loss {:.6g}", number, loss);
      if (number % logEvery == 0)
        progress.begin(text);
      else
        progress.show(text);
      CGC_ASSIGN_OR_RETURN(result_.steady, meter_->read());
    }
  }
  const std::chrono::duration<double, std::milli> time = Clock::now() - first;
  const size_t timed = result_.losses.size() - (steps > 1 ? 1 : 0);
  result_.millis = time.count() / static_cast<double>(std::max<size_t>(timed, 1));
  result_.steady += result_.ready;
  result_.peak = result_.ready + meter_->peak();
  return std::move(result_);
}

} // namespace cgc::tool

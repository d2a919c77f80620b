// Trainer: creation, steps, control values and access to states.
#include "runtime/train/trainer.h"

#include "runtime/exec/bucket_choice.h"
#include "runtime/exec/caller_capture.h"
#include "runtime/train/trainer_impl.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace cgc {
namespace {

Status checkPlan(const PlanData &plan) {
  const std::string isNone = "the plan is no training plan: ";
  const std::string next = "; compile one with `cgc compile --train`";
  const Entry *const step = plan.findEntry(kStepEntry);
  if (!step)
    return {Code::Usage, isNone + "it has no entry '" + kStepEntry + "'" + next};
  if (std::ranges::find(plan.states, StateRole::Parameter, &State::role) == plan.states.end())
    return {Code::Usage, isNone + "it has no parameter that a step could train" + next};
  const Entry *const update = plan.findEntry(kUpdateEntry);
  for (const Entry *entry : {step, update ? update : step})
    for (const Bucket &bucket : entry->buckets)
      if (bucket.outputs.empty() || !isFloating(bucket.outputs[0].dtype) ||
          *tensorBytes(bucket.outputs[0].dtype, bucket.outputs[0].sizes) !=
              dtypeSize(bucket.outputs[0].dtype))
        return {Code::Usage, isNone + "the first output of '" + entry->name +
                                 "', the loss, is not one floating-point number" + next};
  if (!update)
    return Status::ok();
  for (const char *name : {kFirstGradientEntry, kNextGradientEntry})
    if (!plan.findEntry(name))
      return {Code::Usage, isNone + "it has the entry '" + kUpdateEntry + "' and no entry '" +
                               name + "'" + next};
  const std::optional<size_t> count = plan.findState(kMicroBatchesState);
  if (!count || plan.states[*count].dtype != DType::I64 || !plan.states[*count].sizes.empty())
    return {Code::Usage, isNone + "it has no state '" + kMicroBatchesState + "' of i64[]" + next};
  return Status::ok();
}

template <class T> void store(std::byte *to, T value) {
  std::memcpy(to, &value, sizeof(value));
}

template <class T> bool storeInteger(std::byte *to, double value) {
  // Each bound is a power of two, which a double represents.
  const double limit = std::ldexp(1.0, int(8 * sizeof(T) - std::is_signed_v<T>));
  const double least = std::is_signed_v<T> ? -limit : 0;
  if (value < least || value >= limit || value != std::trunc(value))
    return false;
  store(to, static_cast<T>(value));
  return true;
}

/// Stores `value` as an element of `dtype`. False if the dtype does not have it.
bool storeElement(DType dtype, double value, std::byte *to) {
  if (!std::isfinite(value))
    return false;
  switch (dtype) {
  case DType::F32:
    store(to, static_cast<float>(value));
    return std::isfinite(static_cast<float>(value));
  case DType::F64:
    store(to, value);
    return true;
  case DType::I64:
    return storeInteger<int64_t>(to, value);
  case DType::I32:
    return storeInteger<int32_t>(to, value);
  case DType::I16:
    return storeInteger<int16_t>(to, value);
  case DType::I8:
    return storeInteger<int8_t>(to, value);
  case DType::U8:
    return storeInteger<uint8_t>(to, value);
  case DType::Bool:
    store(to, uint8_t(value != 0));
    return value == 0 || value == 1;
  case DType::F16:
  case DType::BF16:
    return false; // Control values need more digits.
  }
  return false;
}

std::string numberText(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

} // namespace

Status checkMicroBatches(double count) {
  constexpr int32_t kMost = INT32_MAX;
  if (count >= 0 && count <= kMost)
    return Status::ok();
  return {Code::Usage, "an update takes 0 to " + std::to_string(kMost) + " micro-batches, not " +
                           numberText(count)};
}

Trainer::Impl::~Impl() {
  destroy();
}

void Trainer::Impl::destroy() {
  (void)withRanks("the steps in flight", [&] {
    context.reset(); // Waits for the work that uses the slots.
    results.clear();
    return Status::ok();
  });
  controls.clear();
  runnables.clear();
  stream.reset();
  engine.reset();
}

Status Trainer::Impl::create() {
  EngineOptions engineOptions = options.engine;
  engineOptions.communicator = options.communicator;
  CGC_ASSIGN_OR_RETURN(Engine newEngine, Engine::create(*plan, std::move(engineOptions)));
  engine = std::make_unique<Engine>(std::move(newEngine));
  CGC_TRY(compareRanks());
  CGC_TRY(withRanks("the first runs of the step", [&]() -> Status {
    CGC_ASSIGN_OR_RETURN(Context newContext, Context::create(*engine, options.context));
    context = std::make_unique<Context>(std::move(newContext));
    return Status::ok();
  }));
  const DeviceGuard guard(implOf(*engine).device);
  if (runsOnGpu()) {
    CGC_ASSIGN_OR_RETURN(stream, createStream());
  }
  std::vector<const Entry *> steps; // Whose results are read back.
  for (const Entry &entry : plan->data().entries) {
    if (entry.name == kStepEntry || entry.name == kUpdateEntry)
      steps.push_back(&entry);
    if (entry.name == kEvaluateEntry)
      continue;
    Runnable runnable{&entry, {}};
    for (size_t b = 0; b < entry.buckets.size(); ++b) {
      runnable.outputs.emplace_back();
      for (size_t i = 0; i < entry.buckets[b].outputs.size(); ++i) {
        CGC_ASSIGN_OR_RETURN(const TensorView buffer, context->outputBuffer(entry.name, b, i));
        runnable.outputs.back().push_back(buffer);
      }
    }
    runnables.push_back(std::move(runnable));
  }
  CGC_ASSIGN_OR_RETURN(results,
                       StepResults::create(steps, implOf(*engine).runsOn, options.stepsInFlight,
                                           options.readOutputs, communicator()));
  CGC_TRY(refreshCopies());
  return moveSeed();
}

Status Trainer::Impl::recreateIfLost() {
  if (context && implOf(*engine).fault.check().isOk())
    return Status::ok();
  destroy();
  Status created = create();
  if (!created.isOk()) {
    destroy();
    broken = created;
  }
  return created;
}

Status Trainer::Impl::refreshCopies() {
  if (!plan->data().findEntry(kRefreshEntry))
    return Status::ok();
  int64_t number = 0;
  const TensorView output{&number, DType::I64, DeviceKind::Cpu, {}, {}};
  return context->run(kRefreshEntry, {}, {&output, 1});
}

const Trainer::Impl::Runnable &Trainer::Impl::runnable(std::string_view name) const {
  return *std::ranges::find(
      runnables, name, [](const Runnable &one) -> std::string_view { return one.entry->name; });
}

Status Trainer::Impl::enqueue(const char *name, std::span<const TensorView> inputs,
                              cudaStream_t callers, bool makesStep) {
  if (callers && runsOnGpu()) {
    CGC_ASSIGN_OR_RETURN(const std::optional<StreamCapture> capture, captureOf(callers));
    if (capture)
      return {Code::Usage, "the stream is being captured, and a trainer reads back the loss of "
                           "each step, which a graph could not; give another stream"};
  }
  const auto &[entry, buffers] = runnable(name);
  CGC_ASSIGN_OR_RETURN(const size_t index, selectBucket(*entry, inputs));
  const Bucket &bucket = entry->buckets[index];
  std::vector<TensorView> outputs = buffers[index];
  if (makesStep) {
    CGC_TRY(noted(results.makeRoom()));
    for (size_t i = 0; i < outputs.size(); ++i)
      if (const std::optional<TensorView> slot = results.view(bucket, i))
        outputs[i] = *slot;
  }
  const cudaStream_t on = callers ? callers : stream.get();
  CGC_TRY(context->run(name, inputs, outputs, runsOnGpu() ? on : nullptr));
  if (!makesStep)
    return Status::ok();
  ++steps;
  return noted(results.add(steps, bucket, on));
}

Status Trainer::Impl::step(std::span<const TensorView> inputs, cudaStream_t callers) {
  if (microBatches != 0)
    return {Code::Usage, std::to_string(microBatches) +
                             " micro-batches have been accumulated, and a step would leave them "
                             "out; call update() first"};
  return enqueue(kStepEntry, inputs, callers, /*makesStep=*/true);
}

Status Trainer::Impl::accumulate(std::span<const TensorView> inputs, cudaStream_t callers) {
  if (!accumulates())
    return {Code::Usage, "the plan has no entries that accumulate gradients; compile it with "
                         "`cgc compile --train --accumulate`"};
  CGC_TRY(enqueue(microBatches == 0 ? kFirstGradientEntry : kNextGradientEntry, inputs, callers,
                  /*makesStep=*/false));
  ++microBatches;
  return Status::ok();
}

Status Trainer::Impl::update(cudaStream_t callers) {
  if (microBatches == 0)
    return {Code::Usage, "no micro-batch has been accumulated since the last update; call "
                         "accumulate() first"};
  CGC_TRY(enqueue(kUpdateEntry, {}, callers, /*makesStep=*/true));
  microBatches = 0;
  return Status::ok();
}

Status Trainer::Impl::readMicroBatches() {
  return context->readState(kMicroBatchesState,
                            {&microBatches, DType::I64, DeviceKind::Cpu, {}, {}});
}

Result<std::vector<double>> Trainer::Impl::ratesOf(const State &state, double base) const {
  const std::span<const std::byte> bytes = state.initial == kBeginsAsZeros
                                               ? std::span<const std::byte>()
                                               : plan->weightBytes(state.initial);
  std::vector<float> first(bytes.size() / sizeof(float));
  std::memcpy(first.data(), bytes.data(), first.size() * sizeof(float));
  if (first.empty() || first.back() == 0)
    return Status(Code::Usage, "the learning rate of the plan is 0, so that its groups have no "
                               "ratio; give a value for each of them");
  std::vector<double> rates;
  for (const float rate : first)
    rates.push_back(base * (double(rate) / double(first.back())));
  return rates;
}

uint64_t Trainer::Impl::largestControl() const {
  uint64_t largest = 0;
  for (const State &state : plan->data().states)
    if (state.role == StateRole::Control)
      largest = std::max(largest, *tensorBytes(state.dtype, state.sizes));
  return largest;
}

Status Trainer::Impl::set(const State &state, std::span<const double> values) {
  const uint64_t bytes = *tensorBytes(state.dtype, state.sizes), width = dtypeSize(state.dtype);
  const uint64_t count = bytes / width;
  if (values.size() != count && values.size() != 1)
    return {Code::Usage, "'" + state.name + "' has " + std::to_string(count) + " elements, not " +
                             std::to_string(values.size()) + "; give one number, or one for each"};
  std::vector<std::byte> elements(bytes);
  for (uint64_t i = 0; i < count; ++i)
    if (const double value = values[values.size() == 1 ? 0 : i];
        !storeElement(state.dtype, value, elements.data() + i * width))
      return {Code::Usage, "'" + state.name + "' is " + std::string(dtypeName(state.dtype)) +
                               ", which does not have the number " + numberText(value)};
  TensorView view{elements.data(), state.dtype, DeviceKind::Cpu, state.sizes, {}};
  if (!runsOnGpu())
    return context->writeState(state.name, view);
  // Waits only if as many copies as steps could be in flight. Each slot has room for any state.
  bool reuses = false;
  if (!controls.empty()) {
    CGC_ASSIGN_OR_RETURN(reuses, controls.front().isDone());
    if (!reuses && controls.size() >= options.stepsInFlight) {
      CGC_TRY(withRanks("the steps in flight", [&] { return controls.front().wait(); }));
      reuses = true;
    }
  }
  if (reuses) {
    controls.push_back(std::move(controls.front()));
    controls.pop_front();
  } else {
    CGC_ASSIGN_OR_RETURN(PinnedMemory memory, PinnedMemory::allocate(largestControl()));
    controls.push_back(std::move(memory));
  }
  const PinnedMemory &memory = controls.back();
  std::memcpy(memory.data(), elements.data(), bytes);
  view.data = memory.data();
  CGC_TRY(context->writeState(state.name, view, stream.get()));
  return noted(memory.mark(stream.get()));
}

Trainer::Trainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trainer::Trainer(Trainer &&) noexcept = default;
Trainer &Trainer::operator=(Trainer &&) noexcept = default;
Trainer::~Trainer() = default;

Result<Trainer> Trainer::create(std::shared_ptr<const Plan> plan, TrainerOptions options) {
  return noThrow([&]() -> Result<Trainer> {
    if (!plan)
      return Status(Code::Usage, "no plan is given");
    if (options.stepsInFlight < 1 || options.stepsInFlight > kMaxStepsInFlight)
      return Status(Code::Usage, std::to_string(options.stepsInFlight) +
                                     " steps in flight: allowed are 1 to " +
                                     std::to_string(kMaxStepsInFlight));
    CGC_TRY(checkPlan(plan->data()));
    auto impl = std::make_unique<Impl>(std::move(plan), std::move(options));
    CGC_TRY(impl->checkFileNames());
    CGC_TRY(impl->create());
    return Trainer(std::move(impl));
  });
}

Status Trainer::step(std::span<const TensorView> inputs, void *stream) {
  return impl_->change([&] {
    return impl_->together([&] { return impl_->step(inputs, static_cast<cudaStream_t>(stream)); });
  });
}

Status Trainer::accumulate(std::span<const TensorView> inputs, void *stream) {
  return impl_->change([&] {
    return impl_->together(
        [&] { return impl_->accumulate(inputs, static_cast<cudaStream_t>(stream)); });
  });
}

Status Trainer::update(void *stream) {
  return impl_->change([&] {
    return impl_->together([&] { return impl_->update(static_cast<cudaStream_t>(stream)); });
  });
}

Result<std::vector<StepResult>> Trainer::poll() {
  std::vector<StepResult> results;
  CGC_TRY(impl_->change([&]() -> Status {
    if (impl_->communicator())
      CGC_TRY(impl_->communicator()->check());
    CGC_TRY(impl_->noted(impl_->results.collect()));
    results = impl_->results.take();
    return Status::ok();
  }));
  return results;
}

Status Trainer::wait() {
  return impl_->change([&] { return impl_->noted(impl_->results.collectAll()); });
}

Status Trainer::evaluate(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                         void *stream) {
  return impl_->use([&]() -> Status {
    CGC_TRY(impl_->finishSteps());
    return impl_->context->run(kEvaluateEntry, inputs, outputs, stream);
  });
}

Status Trainer::set(std::string_view name, std::span<const double> values) {
  return impl_->change([&]() -> Status {
    const PlanData &plan = impl_->plan->data();
    std::optional<size_t> index = plan.findState(name);
    if (!index)
      index = plan.findState(kOptimizerPrefix + std::string(name));
    if (!index || plan.states[*index].role != StateRole::Control) {
      std::string names;
      for (const State &state : plan.states)
        if (state.role == StateRole::Control)
          names += (names.empty() ? "" : ", ") + state.name;
      return {Code::Usage, "there is no control value '" + std::string(name) + "'; the plan has " +
                               (names.empty() ? "none" : names)};
    }
    const State &state = plan.states[*index];
    if (state.name == kMicroBatchesState)
      for (const double value : values)
        CGC_TRY(checkMicroBatches(value));
    if (state.name == kSeedState && impl_->communicator() && values.size() == 1) {
      const double own = values[0] + impl_->communicator()->rank();
      return impl_->set(state, {&own, 1});
    }
    const bool hasGroups = state.name == kLrState && state.dtype == DType::F32 &&
                           state.sizes.size() == 1 && state.sizes[0] > 1;
    if (!hasGroups || values.size() != 1) {
      CGC_TRY(impl_->set(state, values));
      return state.name == kMicroBatchesState ? impl_->readMicroBatches() : Status::ok();
    }
    CGC_ASSIGN_OR_RETURN(const std::vector<double> rates, impl_->ratesOf(state, values[0]));
    return impl_->set(state, rates);
  });
}

Status Trainer::read(std::string_view name, const TensorView &to) {
  return impl_->use([&]() -> Status {
    CGC_TRY(impl_->finishSteps());
    return impl_->context->readState(name, to);
  });
}

Status Trainer::write(std::string_view name, const TensorView &from) {
  return impl_->change([&]() -> Status {
    if (name == kMicroBatchesState && from.device == DeviceKind::Cpu && from.dtype == DType::I64 &&
        from.data)
      CGC_TRY(checkMicroBatches(double(*static_cast<const int64_t *>(from.data))));
    CGC_TRY(impl_->finishSteps());
    CGC_TRY(impl_->refuseMicroBatches(impl_->microBatches));
    const std::optional<size_t> index = impl_->plan->data().findState(name);
    if (index && impl_->isDivided(*index))
      CGC_TRY(impl_->transfer(*index, from, /*toState=*/true));
    else
      CGC_TRY(impl_->context->writeState(name, from));
    if (name == kOffsetState) // Each rank has its own, as its seed.
      return Status::ok();
    CGC_TRY(impl_->shareStates());
    CGC_TRY(impl_->refreshCopies());
    return name == kMicroBatchesState ? impl_->readMicroBatches() : Status::ok();
  });
}

Status Trainer::reset() {
  return impl_->restart([&]() -> Status {
    CGC_TRY(impl_->recreateIfLost());
    const DeviceGuard guard(implOf(*impl_->engine).device);
    CGC_TRY(impl_->dropResults());
    impl_->broken = impl_->context->resetStates();
    if (impl_->broken.isOk())
      impl_->broken = impl_->refreshCopies();
    if (impl_->broken.isOk())
      impl_->broken = impl_->moveSeed();
    impl_->steps = impl_->microBatches = 0;
    return impl_->broken;
  });
}

Status Trainer::save(const std::string &folder, const std::map<std::string, std::string> &notes) {
  return impl_->use([&]() -> Status {
    CGC_TRY(impl_->finishSteps());
    return impl_->save(folder, notes);
  });
}

Result<CheckpointInfo> Trainer::load(const std::string &folder, const LoadOptions &options) {
  return impl_->restart([&] { return impl_->load(folder, options); });
}

Result<std::vector<std::string>> Trainer::loadModel(const std::string &path) {
  return impl_->use([&] { return impl_->loadModel(path); });
}

uint64_t Trainer::stepNumber() const {
  return impl_->steps;
}

uint64_t Trainer::microBatches() const {
  return impl_->microBatches;
}

uint64_t Trainer::nonFinite() const {
  return impl_->results.nonFinite();
}

const Plan &Trainer::plan() const {
  return *impl_->plan;
}

MemoryReport Trainer::memory() const {
  return impl_->engine ? impl_->engine->memory() : MemoryReport();
}

const std::vector<std::string> &Trainer::notes() const {
  static const std::vector<std::string> kNone;
  return impl_->context ? impl_->context->notes() : kNone;
}

} // namespace cgc

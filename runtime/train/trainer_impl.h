// Trainer::Impl: engine, context, and results of a trainer, and how its calls exclude each other.
#pragma once

#include "runtime/base/no_throw.h"
#include "runtime/exec/busy_scope.h"
#include "runtime/exec/context_impl.h"
#include "runtime/train/model_file.h"
#include "runtime/train/step_results.h"
#include "runtime/train/trainer.h"

#include <deque>
#include <memory>
#include <optional>

namespace cgc {

/// For each state the index of its average, or its own index if it has none. Takes time in
/// proportion to the number of states.
std::vector<size_t> averagesOf(std::span<const State> states);

/// For each state whether it is a parameter that the plan updates, a moment or an average.
std::vector<bool> trainedStates(const PlanData &plan);

/// The hash of `text` as 16 digits.
std::string hashDigits(std::string_view text);

/// Usage unless an update can have so many micro-batches.
Status checkMicroBatches(double count);

struct Trainer::Impl {
  Impl(std::shared_ptr<const Plan> plan, TrainerOptions options)
      : plan(std::move(plan)), options(std::move(options)),
        averages(averagesOf(this->plan->data().states)),
        trained(trainedStates(this->plan->data())) {}
  ~Impl();

  // trainer.cpp
  /// Creates engine, context, streams and slots.
  Status create();
  /// Destroys them. Waits for the steps.
  void destroy();
  /// create() after destroy(), if the device's context is lost or there is no context.
  Status recreateIfLost();
  Status step(std::span<const TensorView> inputs, cudaStream_t callers);
  Status accumulate(std::span<const TensorView> inputs, cudaStream_t callers);
  Status update(cudaStream_t callers);
  /// Gives the 16-bit copies, if the plan has any, the values of their parameters.
  Status refreshCopies();
  Status set(const State &state, std::span<const double> values);
  uint64_t largestControl() const; ///< Bytes of the largest control state.
  /// The rate of each group of kLrState, in the plan's ratio to `base`, the last one.
  Result<std::vector<double>> ratesOf(const State &state, double base) const;

  /// An entry and, by bucket, the static buffers of the outputs that are not read back.
  struct Runnable {
    const Entry *entry;
    std::vector<std::vector<TensorView>> outputs;
  };
  /// The entry called `name`, which the plan has.
  const Runnable &runnable(std::string_view name) const;
  /// Enqueues the bucket of an entry that fits `inputs`. If it `makesStep`, its result goes to
  /// `results`.
  Status enqueue(const char *name, std::span<const TensorView> inputs, cudaStream_t callers,
                 bool makesStep);
  /// Sets `microBatches` to the value of its state.
  Status readMicroBatches();

  // ranks.cpp
  Communicator *communicator() const { return options.communicator.get(); }
  /// Runs `body`, in which this rank may wait for the others (within()).
  template <class Body> Status withRanks(const std::string &what, const Body &body) {
    return communicator() ? within(*communicator(), what, body) : body();
  }
  /// Usage if cgc, the plan or its weights are not those of the other ranks.
  Status compareRanks();
  /// Gives all ranks the states of rank 0 that every rank holds, and each a seed of its own. Usage
  /// if they have made other numbers of steps.
  Status shareStates();
  /// Whether one of several ranks holds the state with this index.
  bool isDivided(size_t index) const {
    return communicator() && plan->data().states[index].shard.has_value();
  }
  /// Copies a state to or from `view`, in host memory. All ranks make the call for one that is
  /// divided, with which the views of other ranks than 0 have nothing to do.
  Status transfer(size_t index, const TensorView &view, bool toState);
  /// Usage if several ranks have accumulated gradients of so many micro-batches, which differ.
  Status refuseMicroBatches(uint64_t number) const;
  /// Adds the rank to the seed.
  Status moveSeed();

  // checkpoint.cpp
  /// Usage if two states have the same name in a file, or one has that of a file's notes.
  Status checkFileNames() const;
  Status save(const std::string &folder, const std::map<std::string, std::string> &notes);
  /// The tensors of a file of a checkpoint in the middle of so many micro-batches: accumulated
  /// gradients only if there are some. None of the averages' file if the plan has no averages.
  std::vector<FileTensor> tensorsOf(std::string_view file, uint64_t microBatches) const;
  /// The micro-batches of a checkpoint; 0 if its file does not say. InvalidFile if there cannot be
  /// so many.
  Result<uint64_t> microBatchesOf(const SafetensorsFile &optimizer) const;
  /// The average of `state`, or `state` itself if it has none.
  const State &averaged(const State &state) const;
  /// The index in the plan of one of its states.
  size_t indexOf(const State &state) const;
  /// Writes the files of a checkpoint. Removes from `moved`, the divided states in the order of the
  /// files, those that it took from the other ranks.
  Status saveFiles(const std::string &folder, const std::map<std::string, std::string> &notes,
                   std::deque<size_t> &moved);
  Status saveFile(const std::string &path, const std::vector<FileTensor> &tensors,
                  const SafetensorsMetadata &metadata, std::deque<size_t> &moved);
  Result<CheckpointInfo> load(const std::string &folder, const LoadOptions &options);
  Result<std::vector<std::string>> loadModel(const std::string &path);
  /// The name of a state in its file.
  std::string tensorName(const State &state) const;
  /// A hash of all that decides what the plan's steps compute, but for the first values of states.
  std::string structureHash() const;

  /// Runs `body` as the only user of a trainer that has not failed.
  template <class Body> auto use(const Body &body) -> decltype(body()) {
    return noThrow([&]() -> decltype(body()) {
      const BusyScope scope(busy);
      if (!scope.entered())
        return busyTrainer();
      CGC_TRY(broken);
      CGC_TRY(implOf(*engine).fault.check());
      const DeviceGuard guard(implOf(*engine).device);
      return body();
    });
  }
  /// The same for a `body` that may leave some states with new values and others with old ones if
  /// it fails with another code than Usage.
  template <class Body> Status change(const Body &body) {
    Status status = use(body);
    if (!status.isOk() && status.code() != Code::Usage && broken.isOk()) {
      const Status kept = noThrow([&] { return broken = status; });
      if (broken.isOk())
        broken = kept; // No memory for the message.
    }
    return status;
  }
  /// Runs `body`, which gives all states whole values and may be called for a trainer that failed.
  template <class Body> auto restart(const Body &body) -> decltype(body()) {
    return noThrow([&]() -> decltype(body()) {
      const BusyScope scope(busy);
      if (!scope.entered())
        return busyTrainer();
      return body();
    });
  }
  /// Waits for the steps, as long as the other ranks may take, so that later calls of CUDA do not
  /// wait for a rank that is gone. The failure of another rank, which has ended the collectives of
  /// steps. Does nothing without other ranks.
  Status finishSteps() {
    if (!communicator())
      return Status::ok();
    CGC_TRY(communicator()->check());
    return noted(results.collectAll());
  }
  /// Drops the results of steps, for which it may wait.
  Status dropResults() {
    return withRanks("the steps in flight", [&] {
      results.clear();
      return Status::ok();
    });
  }
  /// Runs `body`, which enqueues a part of a step, as all ranks do. If it fails, this rank does not
  /// make the step of the others, so that no rank can go on.
  template <class Body> Status together(const Body &body) {
    if (!communicator())
      return body();
    CGC_TRY(communicator()->check());
    Status status = withRanks("step " + std::to_string(steps + 1), body);
    if (!status.isOk()) {
      communicator()->abort(status);
      broken = status;
    }
    return status;
  }
  /// Notes an error of the device.
  Status noted(Status status) {
    return runsOnGpu() ? implOf(*engine).fault.note(std::move(status), stream.get()) : status;
  }
  bool runsOnGpu() const { return implOf(*engine).runsOn == DeviceKind::Cuda; }
  bool accumulates() const { return plan->data().findEntry(kUpdateEntry) != nullptr; }

  const std::shared_ptr<const Plan> plan;
  const TrainerOptions options;
  const std::vector<size_t> averages; ///< averagesOf() the plan's states.
  const std::vector<bool> trained;    ///< trainedStates() of the plan.
  StepResults results;
  std::deque<PinnedMemory> controls; ///< Of set(), the one that was used longest ago first.
  CudaStream stream;                 ///< Null on the host.
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Context> context; ///< Null, as the engine, only if `broken` says why.
  std::vector<Runnable> runnables;  ///< All but `evaluate`.
  uint64_t steps = 0;
  uint64_t microBatches = 0; ///< Since the last update.
  Status broken;             ///< The error after which the states may not be whole.
  std::atomic<bool> busy = false;
};

} // namespace cgc

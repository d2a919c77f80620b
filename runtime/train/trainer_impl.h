// Trainer::Impl: engine, context, and results of a trainer, and how its calls exclude each other.
#pragma once

#include "runtime/base/no_throw.h"
#include "runtime/exec/busy_scope.h"
#include "runtime/exec/context_impl.h"
#include "runtime/train/safetensors.h"
#include "runtime/train/step_results.h"
#include "runtime/train/trainer.h"

#include <deque>
#include <memory>
#include <optional>

namespace cgc {

struct Trainer::Impl {
  Impl(std::shared_ptr<const Plan> plan, TrainerOptions options)
      : plan(std::move(plan)), options(std::move(options)) {}
  ~Impl();

  // trainer.cpp
  /// Creates engine, context, streams and slots.
  Status create();
  /// Destroys them. Waits for the steps.
  void destroy();
  /// create() after destroy(), if the device's context is lost or there is no context.
  Status recreateIfLost();
  Status step(std::span<const TensorView> inputs, cudaStream_t callers);
  Status set(const State &state, std::span<const double> values);

  // checkpoint.cpp
  /// Usage if two states have the same name in a file.
  Status checkFileNames() const;
  Status save(const std::string &folder, const std::map<std::string, std::string> &notes);
  /// A tensor of a file: the state that it holds, under its name there.
  struct FileTensor {
    std::string name;
    const State *state;
  };
  /// The tensors of a file of a checkpoint; none of the averages' file if the plan has no averages.
  std::vector<FileTensor> tensorsOf(std::string_view file) const;
  /// The average of `state`, or `state` itself if it has none.
  const State &averaged(const State &state) const;
  Status saveFile(const std::string &path, const std::vector<FileTensor> &tensors,
                  const SafetensorsMetadata &metadata);
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
        return busyStatus();
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
        return busyStatus();
      return body();
    });
  }
  /// Notes an error of the device.
  Status noted(Status status) {
    return runsOnGpu() ? implOf(*engine).fault.note(std::move(status), stream.get()) : status;
  }
  bool runsOnGpu() const { return implOf(*engine).runsOn == DeviceKind::Cuda; }
  const Entry &stepEntry() const { return *plan->data().findEntry(kStepEntry); }

  const std::shared_ptr<const Plan> plan;
  const TrainerOptions options;
  StepResults results;
  std::deque<PinnedMemory> controls; ///< Of set(), the one that was used longest ago first.
  CudaStream stream;                 ///< Null on the host.
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Context> context; ///< Null, as the engine, only if `broken` says why.
  /// The static buffers of outputs that are not read back, by bucket of `step`.
  std::vector<std::vector<TensorView>> outputBuffers;
  uint64_t steps = 0;
  Status broken; ///< The error behind which the states may not be whole.
  std::atomic<bool> busy = false;
};

} // namespace cgc

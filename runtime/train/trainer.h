// Trainer: runs the steps of a training plan, and saves and loads checkpoints. Part of the public
// C++ API of libcgc_runtime.
#pragma once

#include "runtime/base/export.h"
#include "runtime/base/status.h"
#include "runtime/base/tensor_view.h"
#include "runtime/base/training_names.h"
#include "runtime/exec/engine.h"
#include "runtime/plan/plan_file.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cgc {

/// The files of a checkpoint's folder.
inline constexpr std::string_view kModelFile = "model.safetensors";
inline constexpr std::string_view kOptimizerFile = "optimizer.safetensors";
/// Only there if the plan keeps averages of the parameters.
inline constexpr std::string_view kAverageFile = "average.safetensors";
inline constexpr std::string_view kCheckpointFiles[] = {kModelFile, kOptimizerFile, kAverageFile};

/// The largest value of TrainerOptions::stepsInFlight.
inline constexpr size_t kMaxStepsInFlight = 1024;

/// What messages call the ways out that they advise, in the words of the interface that prints
/// them.
struct TrainerWords {
  std::string anyPlan = "LoadOptions::anyPlan";
  std::string loadModel = "loadModel";
  std::string prefix = "another TrainerOptions::prefix";
};

struct TrainerOptions {
  EngineOptions engine = {};
  ContextOptions context = {.copyAheadBytes = 1 << 20};
  /// The ranks that train together, each with a trainer of its own (EngineOptions::communicator).
  /// All of them have to make the same calls in the same order, but for read(), poll(), wait() and
  /// evaluate(). Null: the trainer is alone.
  std::shared_ptr<Communicator> communicator = {};
  /// The steps that may be enqueued before the first of them is complete, 1 to kMaxStepsInFlight.
  /// step() waits for the oldest if there are more. At most this many results are kept for poll();
  /// older ones are dropped.
  size_t stepsInFlight = 32;
  /// Reads all outputs of each step back (StepResult::outputs), not only the loss. Each step in
  /// flight takes pinned memory for its outputs.
  bool readOutputs = false;
  /// What files leave out at the front of the names of states, such as "model." if the module that
  /// was compiled has the model as its member `model`. Names that do not begin with it are kept.
  std::string prefix = {};
  TrainerWords words = {};
};

/// A step that is complete.
struct StepResult {
  uint64_t step = 0; ///< Its number: 1 for the first step after create() or reset().
  double loss = 0;
  /// The dense bytes of each output, in the plan's order, if TrainerOptions::readOutputs is set.
  std::vector<std::vector<std::byte>> outputs = {};
};

/// What save() writes beside the states and load() returns.
struct CheckpointInfo {
  uint64_t step = 0; ///< Trainer::stepNumber().
  /// The caller's own notes: the position in the data, for example.
  std::map<std::string, std::string> notes = {};
};

struct LoadOptions {
  /// Also loads a checkpoint that another plan wrote, if its states have the same names, dtypes and
  /// sizes. The steps after it are then those of this plan: with another batch or other kernels
  /// they are not bit-equal to those that the other plan would have made.
  bool anyPlan = false;
};

/// A training plan on one device with its states, or one rank of several
/// (TrainerOptions::communicator). Ranks start from equal states: create() compares the values in
/// the plan, and load(), loadModel() and write() copy the states of rank 0 to the others. A plan of
/// `cgc compile --shard-optimizer` divides moments and averages: each is held by one of the ranks,
/// and goes to or from a checkpoint through rank 0. The seed
/// of random numbers of rank r is that of the plan, of a checkpoint or of set(), plus r. A rank
/// that fails, does not hear of the others within the communicator's timeout, or refuses a batch,
/// ends the collectives of all: their trainers fail as after a failed step, and need a new
/// communicator. Not thread-safe: a second caller at the same time gets Usage.
///
/// A step that fails with another code than Usage may have written some of its states and not
/// others. Every later call then fails with its error until load(), which starts from whole states,
/// or reset(). After an error that CUDA calls sticky, load() and reset() create engine and context
/// anew; they fail if the driver still refuses the device, and the process must end then.
class CGC_API Trainer final {
public:
  /// Uploads the weights, creates a context and gives the states their first values. Shares
  /// ownership of `plan`. Compares cgc's version, the plan and its weights with those of the other
  /// ranks: Usage, naming the first difference, if there is one. Usage if it is no training plan:
  /// one with a state of role `parameter` and with the entry `step`, whose first output is the
  /// loss, one floating-point number. Usage for options that do not fit; otherwise fails as
  /// Engine::create and Context::create do.
  static Result<Trainer> create(std::shared_ptr<const Plan> plan, TrainerOptions options = {});
  Trainer(Trainer &&) noexcept;
  Trainer &operator=(Trainer &&) noexcept;
  /// Waits for the steps that are enqueued.
  ~Trainer();

  /// Enqueues one step on a batch: the inputs of `step` in the plan's order, dense, in host memory
  /// or, if the plan runs on a GPU, in device memory. The bucket with their shapes runs it. The
  /// call returns before the step is complete, unless the plan runs on the host. Inputs in device
  /// or pinned memory must stay as they are until the step is complete; other inputs have been
  /// read when the call returns.
  ///
  /// The step runs on `stream`, a cudaStream_t, or on a stream of the trainer's own. Either way it
  /// follows the steps before it. Usage if the inputs do not fit, or if the stream is being
  /// captured, or between accumulate() and update(): then nothing was enqueued.
  Status step(std::span<const TensorView> inputs, void *stream = nullptr);

  /// Enqueues loss and gradients of a micro-batch, as step() does with a batch, and adds the
  /// gradients to those of the micro-batches before it. Micro-batches have no result of their own.
  /// Usage if the plan cannot: it has no entries `gradient.first`, `gradient.next` and `update`
  /// (`cgc compile --train --accumulate`).
  Status accumulate(std::span<const TensorView> inputs, void *stream = nullptr);
  /// Enqueues the update of a step by the mean of the gradients of the micro-batches, so that k
  /// micro-batches of n / k samples make the step of n samples if the loss is a mean over samples.
  /// The result of the step has the mean of their losses and the outputs of `update`. Usage without
  /// a micro-batch since the last update.
  Status update(void *stream = nullptr);

  /// The results of the steps that have completed since the last poll(), in order. Does not wait.
  /// Fails with the device's error if it failed; then no later result comes.
  Result<std::vector<StepResult>> poll();
  /// Waits until all steps are complete. Their results are there for poll().
  Status wait();

  /// Runs the entry `evaluate` after the steps before it, as Context::run() does: waits for the
  /// outputs without `stream`. Usage if the plan has no such entry or the views do not fit.
  Status evaluate(std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                  void *stream = nullptr);

  /// Sets the state of role `control` that is called `name`, or "optimizer:" and `name`, such as
  /// "lr". `values` has one number for each element, or one for all. One number for "lr" is the
  /// base rate, that of the parameters in no group, the last element: each group keeps its ratio to
  /// it in the plan. Does not wait: the steps before it see the old value, those after it the new
  /// one. Usage if there is no such state, if the number of values does not fit, or if one is NaN,
  /// infinite or out of the dtype's range.
  Status set(std::string_view name, std::span<const double> values);
  Status set(std::string_view name, double value) { return set(name, {&value, 1}); }

  /// Copies any state to or from a dense view of its dtype and sizes, after the steps before it,
  /// and waits (Context::readState, Context::writeState). write() refreshes the 16-bit copies of
  /// parameters, as create(), reset(), load() and loadModel() do. All ranks make the call of
  /// write(), but for "random:offset", which is each rank's own. read() of a state that another
  /// rank holds is Usage, with the number of that rank.
  Status read(std::string_view name, const TensorView &to);
  Status write(std::string_view name, const TensorView &from);

  /// Gives each state its first value and sets stepNumber(), microBatches() and nonFinite() to 0.
  /// Results that nobody polled are dropped.
  Status reset();

  /// Waits for the steps and writes a checkpoint to the folder `folder`: `model.safetensors` with
  /// the states of the roles `parameter` and `buffer` under their names in the model, and
  /// `optimizer.safetensors` with all others but copies, "w.exp_avg" for the state "w:exp_avg", of
  /// accumulated gradients only if microBatches() is not 0. If there are averages,
  /// `average.safetensors` has what `model.safetensors` has, with the averages in the place of
  /// their parameters. The files are written to "`folder`.tmp.PID", synced, and put in the place of
  /// `folder` at once, so that readers see the checkpoint before or all of this one. The folder
  /// that contains `folder` must exist. Of several ranks, rank 0 writes, and the others send it the
  /// states that they alone hold, one at a time, and are Ok also if rank 0 fails.
  /// Usage if `folder` exists and is no checkpoint; Failed if
  /// the files cannot be written, or if a parameter that the steps train, its moments or its
  /// average have a NaN or an infinity, and the checkpoint before is whole.
  Status save(const std::string &folder, const std::map<std::string, std::string> &notes = {});

  /// Gives all states, stepNumber() and microBatches() the values of a checkpoint, and nonFinite()
  /// 0. Verifies all files before it changes anything. InvalidFile if the folder has no checkpoint
  /// or a file is cut short or damaged; Usage, naming the first difference, if the checkpoint is of
  /// another model, optimizer or plan. If the device fails after that, the trainer is as after a
  /// failed step.
  Result<CheckpointInfo> load(const std::string &folder, const LoadOptions &options = {});

  /// Gives the states of the roles `parameter` and `buffer` the values of a file of safetensors, as
  /// the start of a training; averages start there, too. The file may be a checkpoint's
  /// `model.safetensors`, for which its folder stands, or that of another program; f16 and bf16 are
  /// converted to f32, every other dtype must be equal. Returns the names of the tensors that no
  /// state took. All or nothing, as load(). Usage if a state is not in the file or has other sizes
  /// or another dtype there.
  Result<std::vector<std::string>> loadModel(const std::string &path);

  // Only the thread that uses the trainer may read these counters.

  /// The steps, or updates, that have been enqueued since create() or reset(), with those of the
  /// checkpoint that was loaded.
  uint64_t stepNumber() const;
  /// The micro-batches since the last update, with those of the checkpoint that was loaded.
  uint64_t microBatches() const;
  /// The steps with a loss of NaN or infinity, of those that have completed since create(), reset()
  /// or load(). Counts a step when poll(), wait() or step() sees that it is complete.
  uint64_t nonFinite() const;

  const Plan &plan() const;
  /// The memory of engine and context now, without the pinned memory of results.
  MemoryReport memory() const;
  /// Context::notes().
  const std::vector<std::string> &notes() const;

  struct Impl; ///< trainer_impl.h, which is not installed.

private:
  explicit Trainer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace cgc

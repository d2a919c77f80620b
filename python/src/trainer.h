// Trainer: a cgc_trainer. One thread at a time may call it; a second one gets the UsageError of the
// C API.
#pragma once

#include "communicator.h"
#include "plan.h"
#include "tensor.h"

#include <memory>
#include <string>
#include <vector>

namespace cgc_python {

/// Every member but the counters releases the GIL while the runtime works.
class Trainer final {
public:
  /// `communicator` may be null. `options` has members of cgc_trainer_options by name; those that
  /// it lacks have their defaults.
  Trainer(const Plan &plan, const Communicator *communicator, const nanobind::kwargs &options);
  Trainer(const Trainer &) = delete;
  Trainer &operator=(const Trainer &) = delete;
  /// Waits for the steps that are enqueued.
  ~Trainer();

  /// `stream` is a cudaStream_t, or 0 for one of the trainer's own.
  void step(const std::vector<const Tensor *> &inputs, uintptr_t stream);
  void accumulate(const std::vector<const Tensor *> &inputs, uintptr_t stream);
  void update(uintptr_t stream);
  /// A list of (step, loss) for the steps that have completed since the last call.
  nanobind::list poll();
  void wait();
  void evaluate(const std::vector<const Tensor *> &inputs,
                const std::vector<const Tensor *> &outputs, uintptr_t stream);
  void set(const char *name, const std::vector<double> &values);
  void read(const char *name, const Tensor &to);
  void write(const char *name, const Tensor &from);
  void save(const char *folder);
  void load(const char *folder, bool anyPlan);
  void loadModel(const char *path);
  void reset();

  uint64_t stepNumber() const { return cgc_trainer_step_number(trainer_); }
  uint64_t microBatches() const { return cgc_trainer_micro_batches(trainer_); }
  uint64_t nonFinite() const { return cgc_trainer_non_finite(trainer_); }
  /// The members of cgc_memory_report by name.
  nanobind::dict memory() const;

private:
  cgc_trainer *trainer_ = nullptr;
};

} // namespace cgc_python

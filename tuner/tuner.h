// Tuner: times the ways to compute each GEMM of a plan inside the captured graph of its bucket, and
// puts the fastest into the plan.
#pragma once

#include "runtime/exec/engine.h"
#include "runtime/plan/plan_file.h"

#include <string>
#include <vector>

namespace cgc::tuner {

/// The result for one kind of GEMM, a GemmProblem.
struct TunedGemm {
  std::string entry;         ///< The entry in which it was timed.
  std::string description;   ///< describe() of its sites.
  std::string before, after; ///< The names of what computed it, and of what does now.
  size_t sites = 0;          ///< The number of such GEMMs in the bucket where it was timed.
  size_t tried = 0;          ///< The number of choices that were timed.
  /// Microseconds of one replay of that bucket, with all other GEMMs as they were then.
  double microsBefore = 0, microsAfter = 0;
};

/// The result of tune().
struct Tuned {
  PlanData plan;
  std::vector<TunedGemm> gemms;
  std::vector<std::string> notes; ///< One line for each kind of choice that could not be tried.
};

/// Ok if this machine has a GPU to tune on. Otherwise Device, with what is missing and the next
/// step.
Status checkMachine();

/// Returns the plan, whose target is cuda, with the fastest choice for each GEMM, the measured time
/// of each bucket and the GPU that it was tuned on. Weights and the first values of states do not
/// change. Equal GEMM problems are timed once: all of them are replaced in the graph of the first
/// bucket that has any, so that each reads weights of its own between its real neighbors. `plan`
/// keeps its own choice unless another one is faster by more than the noise. `options` are those of
/// the engine that will run the plan. Usage if the target is cpu; Device without a GPU.
Result<Tuned> tune(const Plan &plan, const EngineOptions &options = {});

} // namespace cgc::tuner

// Tuner: times the ways to compute each product of a plan inside the captured graph of its bucket,
// and puts the fastest into the plan.
#pragma once

#include "runtime/exec/engine.h"
#include "runtime/plan/plan_file.h"

#include <string>
#include <vector>

namespace cgc::tuner {

/// What was found for one kind of product: one dtype, shape and epilogue.
struct TunedProduct {
  std::string entry, product; ///< Where it was timed, and what it is.
  std::string before, after;  ///< What computed it, and what does now.
  size_t sites = 0;           ///< In the bucket where it was timed.
  size_t tried = 0;
  /// Of one replay of that bucket, with all other products as they were then.
  double microsBefore = 0, microsAfter = 0;
};

struct Tuned {
  PlanData plan;
  std::vector<TunedProduct> products;
  std::vector<std::string> notes; ///< What could not be tried, a line each.
};

/// Ok if this machine has a GPU to tune on; else Device, with what is missing and the next step.
Status checkMachine();

/// The plan, whose target is cuda, with the fastest choice for each product and the GPU that it was
/// tuned on. Weights do not change. Products of equal dtype, shape, strides and epilogue are timed
/// once: all of them are replaced in the graph of the first bucket that has any, so that each
/// reads weights of its own and has its real neighbours. `plan` keeps its choice where no other is
/// faster by more than the noise. `options` are those of the engine that runs the plan.
Result<Tuned> tune(const Plan &plan, const EngineOptions &options = {});

} // namespace cgc::tuner

// OptimizerStep: the operands of cgc.sgd and cgc.adam as dense tensors of one dimension.
#pragma once

#include "backend/kernels.h"
#include "backend/ops/converted.h"

#include <string>
#include <vector>

namespace cgc::backend {

/// The operands of an optimizer's node. Each list has a tensor for each parameter.
struct OptimizerStep {
  std::vector<Place> gradients;
  /// The lists that the step updates, the parameters first, and their results.
  std::vector<std::vector<Place>> values, results;
  std::vector<Place> copies; ///< The new parameters in 16 bits; empty if the node has none.
  Place lr, step;            ///< Without dimensions, as scale and skip.
  std::optional<Place> scale = {}, skip = {};

  size_t size() const { return gradients.size(); }
};

/// The operands of `node`. Allocates its results, which are those of the lists `names` in turn and
/// the copies.
OptimizerStep optimizerStep(const ir::Node &node, llvm::ArrayRef<llvm::StringRef> names,
                            BucketBuilder &builder);

/// Adds launches of `kernel`, one with the trait kTensorGroups, for all parameters, and returns
/// true. Returns false and adds nothing if launchGroups() does.
bool launchOptimizer(llvm::StringRef kernel, const OptimizerStep &step, std::vector<int64_t> ints,
                     std::vector<double> floats, BucketBuilder &builder);

/// Whether the record launches the kernel of an optimizer or of its averages, which updates
/// states of a training step.
bool isOptimizerLaunch(const LaunchRecord &record);

/// Adds launches of `kernel`, one with the trait kTensorGroups, for all groups of tensors, of which
/// `firsts` has the first of each, and returns true. `shared` makes the shared reads, and `group`
/// the tensors of a group. Groups without elements need nothing. Returns false and adds nothing if
/// the target is not cuda or a tensor is not f32.
bool launchGroups(llvm::StringRef kernel, const std::vector<Place> &firsts,
                  llvm::function_ref<std::vector<std::optional<Place>>()> shared,
                  llvm::function_ref<RecordTensors(size_t)> group, std::vector<int64_t> ints,
                  std::vector<double> floats, BucketBuilder &builder);

} // namespace cgc::backend

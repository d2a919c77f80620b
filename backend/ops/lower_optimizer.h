// OptimizerStep: the operands of cgc.sgd and cgc.adam as dense tensors of one dimension.
#pragma once

#include "backend/kernels.h"
#include "backend/ops/tensor_math.h"
#include "runtime/kernels/optimizer/sgd.h"

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

/// Adds launches of `kernel`, one with the trait kTensorGroups, for all parameters that it takes.
/// Returns the indices of the others. Parameters without elements need nothing.
std::vector<size_t> launchOptimizer(llvm::StringRef kernel, const OptimizerStep &step,
                                    std::vector<int64_t> ints, std::vector<double> floats,
                                    BucketBuilder &builder);

/// Adds launches of `kernel`, one with the trait kTensorGroups, for all groups of f32 tensors, of
/// which `firsts` has the first of each. `shared` makes the shared reads, and `group` the tensors
/// of a group. Returns the indices of the groups that no launch takes. Groups without elements need
/// nothing.
std::vector<size_t> launchGroups(llvm::StringRef kernel, const std::vector<Place> &firsts,
                                 llvm::function_ref<std::vector<std::optional<Place>>()> shared,
                                 llvm::function_ref<RecordTensors(size_t)> group,
                                 std::vector<int64_t> ints, std::vector<double> floats,
                                 BucketBuilder &builder);

/// Adds the records of a step of cgc.sgd.
void lowerSgd(const OptimizerStep &step, const SgdNumbers &numbers, BucketBuilder &builder);

/// Adds the calls that compute gradient `i` times the scale, in the dtype of its parameter.
Place scaledGradient(const OptimizerStep &step, size_t i, TensorMath &math);

/// The place for the new value `i` of list `list`: its result, or a temporary if the step may be
/// skipped. Call keepIfSkipped() when it is computed.
Place newValue(const OptimizerStep &step, size_t list, size_t i, BucketBuilder &builder);
/// Makes the result the new value, or the old one if the step is skipped.
void keepIfSkipped(const OptimizerStep &step, size_t list, size_t i, const Place &value,
                   TensorMath &math);
/// Writes the copy of parameter `i`, if there are copies. Call it after keepIfSkipped().
void writeCopy(const OptimizerStep &step, size_t i, BucketBuilder &builder);

} // namespace cgc::backend

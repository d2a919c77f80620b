// Arithmetic on constants in f64, which no kernel computes.
#pragma once

#include "ir/graph.h"

#include <memory>

namespace cgc::driver {

/// The result of `node`, one of the ops that passes add for a parameter in f64: casts from and to
/// it, sums, products, neg, rsqrt and padding. `inputs` are those of ConstantEvaluator::evaluate().
/// Each element is rounded once. Null for another op or other dtypes.
std::shared_ptr<const ir::TensorData>
computeInDouble(const ir::Node &node, llvm::ArrayRef<std::shared_ptr<const ir::TensorData>> inputs);

} // namespace cgc::driver

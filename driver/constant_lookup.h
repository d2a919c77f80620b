// Lookups in constants: choices of rows, without LibTorch.
#pragma once

#include "ir/graph.h"

#include <memory>

namespace cgc::driver {

/// The result of `node` on constant operands if it is an index of one tensor of integers, for the
/// first dimension: rows of the first operand. Null for other ops and forms, and if an index is out
/// of range.
std::shared_ptr<const ir::TensorData>
lookUpRows(const ir::Node &node, llvm::ArrayRef<std::shared_ptr<const ir::TensorData>> inputs);

} // namespace cgc::driver

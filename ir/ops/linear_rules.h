// linear_rules: what cgc.linear, cgc.norm_linear and cgc.conv2d share: types and activations.
#pragma once

#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Returns the sizes of 'input' [..., K] times the transpose of 'weight' [N, K]: [..., N]. Refuses
/// other sizes, a 'bias' that is not [N], operands of different dtypes, and an unknown
/// 'activation'.
Result<Dims> fusedLinear(const InferArgs &args);

/// Refuses an unknown 'activation'.
Status checkActivation(const InferArgs &args);
/// Adds the activation of this name to `x`.
Value *activated(OpBuilder &b, Value *x, llvm::StringRef activation);

} // namespace cgc::ir::rules

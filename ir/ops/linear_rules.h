// linear_rules: the type rule shared by cgc.linear and cgc.norm_linear.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Returns the sizes of 'input' [..., K] times the transpose of 'weight' [N, K]: [..., N]. Refuses
/// other sizes, a 'bias' that is not [N], operands of different dtypes, and an unknown
/// 'activation'.
Result<Dims> fusedLinear(const InferArgs &args);

} // namespace cgc::ir::rules

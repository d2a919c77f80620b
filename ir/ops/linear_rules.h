// What the rules of cgc.linear and cgc.norm_linear share.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// The sizes of 'input' [..., K] times the transpose of 'weight' [N, K]: [..., N]. Refuses other
/// sizes, a 'bias' that is not [N], operands of several dtypes, and an 'activation' that there is
/// not.
Result<Dims> fusedLinear(const InferArgs &args);

} // namespace cgc::ir::rules

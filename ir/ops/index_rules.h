// index_rules: the type rules of ops whose elements are chosen by tensors of indices. LibTorch
// checks the indices themselves when the plan runs.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Returns the sizes of 'self' indexed by the list 'indices' of integer tensors, some of which may
/// be none. Refuses masks, whose number of true elements depends on data.
Result<Dims> indexedSizes(const InferArgs &args);
/// Adds 'self' with elements replaced along 'dim' at 'index' by those of 'src', which may be a
/// number.
Status scatter(const InferArgs &args, Results &results);

} // namespace cgc::ir::rules

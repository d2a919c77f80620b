// reduction_rules: the type rules of reductions that several ops share.
#pragma once

#include "ir/ops/rules.h"

namespace cgc::ir::rules {

/// Adds the extreme elements of 'self' over the dimensions of the list 'dim'.
Status extremes(const InferArgs &args, Results &results);
/// Adds the index (i64) of the extreme element of 'self' along 'dim', or of all without 'dim'.
Status indexOfExtreme(const InferArgs &args, Results &results);
/// Adds the extreme element of 'self' along 'dim', and its index.
Status extremeAndIndex(const InferArgs &args, Results &results);
/// Adds a result of the dtype of 'self', which is floating, over the dimensions of the list 'dim'.
Status floatingReduction(const InferArgs &args, Results &results);
/// Adds a result of the sizes of 'self' and of 'dtype', or of the dtype of 'self' without it;
/// floating.
Status softmax(const InferArgs &args, Results &results);

} // namespace cgc::ir::rules

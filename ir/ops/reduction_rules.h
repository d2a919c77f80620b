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
/// Adds a result of the dtype and sizes of 'self', and one of indices, for ops along 'dim'.
Status elementsAndIndices(const InferArgs &args, Results &results);
/// Adds the bool, or for u8 the u8, of 'self' over the dimensions of the list 'dim': all if it is
/// none, no dimension if it is empty.
Status truth(const InferArgs &args, Results &results);
/// Adds a result of the dtype of 'self', which is floating, over the dimensions of the list 'dim'.
Status floatingReduction(const InferArgs &args, Results &results);
/// The dtype of a sum, product or running sum of 'self': 'dtype' if it is given, else that of
/// 'self', but i64 for integers and bools.
DType accumulationDType(const InferArgs &args);
/// Adds a running sum or product of 'self' along 'dim', of accumulationDType().
Status accumulated(const InferArgs &args, Results &results);
/// Adds a result of the sizes of 'self' and of 'dtype', or of the dtype of 'self' without it;
/// floating.
Status softmax(const InferArgs &args, Results &results);

} // namespace cgc::ir::rules

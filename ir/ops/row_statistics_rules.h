// row_statistics_rules: the type rule and the definition of row statistics, an optional last result
// of several ops.
#pragma once

#include "ir/op_builder.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

/// Columns of a group of row statistics. For each group of a row (the last may have fewer columns)
/// row statistics hold the sum of the elements and the sum of their squares, in f32, of the
/// elements as rounded to their dtype. cgc.norm_linear derives mean and variance of a row from
/// them.
inline constexpr int64_t kRowStatisticsGroup = 64;

namespace rules {

/// Returns the sizes of the row statistics of a tensor [..., C], with its R rows in one dimension:
/// [R, ceil(C / 64), 2].
Dims rowStatisticsSizes(llvm::ArrayRef<int64_t> sizes);

/// Adds the row statistics of the last result so far if the argument 'row_statistics' is true.
Status addRowStatistics(const InferArgs &args, Results &results);

/// Appends the row statistics of the last value so far to the results of a definition, likewise.
void defineRowStatistics(OpBuilder &b, Values &values);

} // namespace rules
} // namespace cgc::ir

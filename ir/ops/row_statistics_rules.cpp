// row_statistics_rules: the type rule of row statistics.
#include "ir/ops/row_statistics_rules.h"

namespace cgc::ir::rules {

Dims rowStatisticsSizes(llvm::ArrayRef<int64_t> sizes) {
  int64_t rows = 1;
  for (int64_t size : sizes.drop_back())
    rows *= size;
  const int64_t columns = sizes.back();
  return {rows, columns / kRowStatisticsGroup + (columns % kRowStatisticsGroup != 0), 2};
}

Status addRowStatistics(const InferArgs &args, Results &results) {
  if (!args.boolean("row_statistics"))
    return Status::ok();
  return addDense(results, DType::F32, rowStatisticsSizes(results.back().type.sizes));
}

} // namespace cgc::ir::rules

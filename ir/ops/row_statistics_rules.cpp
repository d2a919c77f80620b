// row_statistics_rules: the type rule and the definition of row statistics.
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

void defineRowStatistics(OpBuilder &b, Values &values) {
  if (!b.args().boolean("row_statistics"))
    return;
  Value *y = values.back();
  const Dims sizes = rowStatisticsSizes(y->tensor().sizes);
  const int64_t rows = sizes[0], groups = sizes[1], columns = y->tensor().sizes.back();
  Value *elements = b.reshape(b.to(y, DType::F32), {rows, columns});
  if (const int64_t missing = groups * kRowStatisticsGroup - columns)
    elements = b.call(OpKind::ConstantPadNd, {elements, Arg::ints(Dims{0, missing})});
  elements = b.reshape(elements, {rows, groups, kRowStatisticsGroup});
  Value *sums = b.sum(elements, {2}, /*keepDim=*/false);
  Value *squares = b.sum(b.mul(elements, elements), {2}, /*keepDim=*/false);
  values.push_back(b.call(OpKind::Stack, {Arg::List{sums, squares}, 2}));
}

} // namespace cgc::ir::rules

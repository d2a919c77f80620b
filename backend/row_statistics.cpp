// Row statistics: looks forward through their users for records that will read them.
#include "backend/row_statistics.h"

#include "backend/ops/cgc_norm_linear.h"
#include "ir/op_views.h"
#include "ir/ops/row_statistics_rules.h"
#include "runtime/kernels/rowwise/row_statistics.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::backend {
namespace {

static_assert(ir::kRowStatisticsGroup == kStatisticsGroup,
              "the kernels store the row statistics that the IR defines");

/// The row statistics that `node` has as its last result; null if it has none.
const ir::Value *rowStatisticsOf(const ir::Node &node) {
  return node.arg("row_statistics") == ir::Arg(true) ? node.result(node.numResults() - 1) : nullptr;
}

/// The cgc.norm_linear that `user`, of these row statistics, is, if it can also do without them.
std::optional<ir::NormLinearOp> normLinearOf(const ir::Node &user, const ir::Value *statistics) {
  const auto op = ir::NormLinearOp::of(user);
  return op && op->input() != statistics ? op : std::nullopt;
}

/// Adds the records that compute the row statistics of `y`, a dense tensor.
void computeRowStatistics(const Place &y, const Place &statistics, BucketBuilder &builder) {
  const int64_t rows = statistics.sizes[0], groups = statistics.sizes[1], columns = y.sizes.back();
  const auto matrix = [](Place place, ir::Dims sizes, ir::Dims strides) {
    place.sizes = std::move(sizes);
    place.strides = std::move(strides);
    return place;
  };
  // The elements in f32, with zeros after each row to fill its last group.
  const int64_t width = groups * kStatisticsGroup;
  const Place elements = builder.temporary(DType::F32, {rows, groups, kStatisticsGroup});
  if (columns != width)
    builder.fill(elements, 0.0);
  builder.copy(matrix(y, {rows, columns}, {columns, 1}),
               matrix(elements, {rows, columns}, {width, 1}));
  const Place squares = builder.temporary(DType::F32, elements.sizes);
  builder.callInto("aten::mul", "out", {builder.tensor(elements), builder.tensor(elements)},
                   squares);
  Place sums = matrix(statistics, {rows, groups}, {groups * 2, 2});
  for (const Place &addends : {elements, squares}) {
    builder.callInto("aten::sum", "IntList_out",
                     {builder.tensor(addends), std::vector<int64_t>{2}, false, NoneArg{}}, sums);
    sums.offset += dtypeSize(DType::F32);
  }
}

} // namespace

std::optional<Place> wantedRowStatistics(const ir::Node &node, BucketBuilder &builder) {
  const ir::Value *statistics = rowStatisticsOf(node);
  const auto reads = [&](const ir::Node *user) {
    const auto op = normLinearOf(*user, statistics);
    return !op || lowersToNormGemm(*op, builder);
  };
  if (!statistics || llvm::none_of(statistics->users(), reads))
    return std::nullopt;
  return builder.temporary(DType::F32, statistics->tensor().sizes);
}

void placeRowStatistics(const ir::Node &node, const Place &y,
                        const std::optional<Place> &statistics, bool written,
                        BucketBuilder &builder) {
  if (!statistics)
    return;
  const ir::Value *value = rowStatisticsOf(node);
  if (!written) {
    if (llvm::all_of(value->users(),
                     [&](const ir::Node *user) { return normLinearOf(*user, value).has_value(); }))
      return;
    computeRowStatistics(y, *statistics, builder);
  }
  builder.setPlace(value, *statistics);
}

} // namespace cgc::backend

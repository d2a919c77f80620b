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

bool placeRowStatistics(const ir::Node &node, const std::optional<Place> &written,
                        BucketBuilder &builder) {
  const ir::Value *value = rowStatisticsOf(node);
  if (value && written)
    builder.setPlace(value, *written);
  return !value || written || llvm::all_of(value->users(), [&](const ir::Node *user) {
    return normLinearOf(*user, value).has_value();
  });
}

} // namespace cgc::backend

// Row statistics: looks forward through their users for records that will read them.
#include "backend/row_statistics.h"

#include "backend/ops/cgc_norm_linear.h"
#include "ir/op_def.h"
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
  const std::optional<unsigned> index = ir::opSchema(node.op()).find("row_statistics");
  return index && node.args()[*index] == ir::Arg(true) ? node.result(node.numResults() - 1)
                                                       : nullptr;
}

/// Whether `isRead(reader, value)` holds for a reader of `value`, or of the result of an op that it
/// is in the definition of that op.
bool anyReader(const ir::Value &value,
               llvm::function_ref<bool(const ir::Node &, const ir::Value &)> isRead,
               const BucketBuilder &builder) {
  return llvm::any_of(value.users(), [&](const ir::Node *user) {
    const bool isOutput = user->kind() == ir::NodeKind::Output;
    const ir::Value *result = isOutput ? builder.resultOf(&value) : nullptr;
    return result ? anyReader(*result, isRead, builder) : isRead(*user, value);
  });
}

/// The cgc.norm_linear that `user`, of these row statistics, is, if it can also do without them.
std::optional<ir::CgcNormLinearOp> normLinearOf(const ir::Node &user, const ir::Value *statistics) {
  const auto op = ir::CgcNormLinearOp::of(user);
  return op && op->input() != statistics ? op : std::nullopt;
}

} // namespace

std::optional<Place> wantedRowStatistics(const ir::Node &node, BucketBuilder &builder) {
  const ir::Value *statistics = rowStatisticsOf(node);
  const auto reads = [&](const ir::Node &user, const ir::Value &value) {
    const auto op = normLinearOf(user, &value);
    return !op || lowersToNormGemm(*op, builder);
  };
  if (!statistics || !anyReader(*statistics, reads, builder))
    return std::nullopt;
  return builder.temporary(DType::F32, statistics->tensor().sizes);
}

bool isDispensable(const ir::Value &value, const ir::Node &node, const BucketBuilder &builder) {
  const auto needs = [](const ir::Node &user, const ir::Value &statistics) {
    return !normLinearOf(user, &statistics);
  };
  return &value == rowStatisticsOf(node) && !anyReader(value, needs, builder);
}

bool placeRowStatistics(const ir::Node &node, const std::optional<Place> &written,
                        BucketBuilder &builder) {
  const ir::Value *value = rowStatisticsOf(node);
  if (value && written)
    builder.setPlace(value, *written);
  return !value || written || isDispensable(*value, node, builder);
}

} // namespace cgc::backend

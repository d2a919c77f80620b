// sum: cgc's own kernels on cuda; else LibTorch.
#include "backend/ops/lower_column_sums.h"
#include "backend/ops/lower_sum.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::backend {
namespace {

/// Whether the call adds up all dimensions but the last.
bool sumsRows(const ir::Node &node) {
  const ir::TensorType &self = node.arg("self").value()->tensor();
  const auto dims = node.arg("dim").asInts();
  if (!dims || self.rank() < 2 || static_cast<int64_t>(dims->size()) != self.rank() - 1)
    return false;
  return llvm::all_of(
      *dims, [&](int64_t dim) { return (dim < 0 ? dim + self.rank() : dim) != self.rank() - 1; });
}

} // namespace

Status lowerSum(const ir::Node &node, BucketBuilder &builder) {
  const Place result = builder.allocate(*node.result());
  const Place input = builder.place(node.arg("self").value());
  if (!(sumsRows(node) && launchColumnSums(input, result, builder)) &&
      !launchSums(node, input, {}, result, builder))
    builder.callInto("aten::sum", "IntList_out", callArgs(node, builder), result);
  return Status::ok();
}

} // namespace cgc::backend

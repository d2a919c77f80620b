// mean: cgc's own kernel on cuda for the mean over the rows of each matrix of a batch; else
// LibTorch.
#include "backend/kernels.h"
#include "backend/lowering.h"
#include "runtime/kernels/rowwise/mean_rows.h"

namespace cgc::backend {
namespace {

/// The input as [batches, rows, columns], if the mean is over rows.
std::optional<Place> batchesOfRows(const ir::Node &node, Place input) {
  const auto rank = static_cast<int64_t>(input.sizes.size());
  const ir::Arg &dim = node.arg("dim");
  const auto dims = dim.isNone() ? std::nullopt : dim.asInts();
  if (!dims || dims->size() != 1 || rank < 2 || (dims->front() + rank) % rank != rank - 2)
    return std::nullopt;
  if (rank == 2) {
    input.sizes.insert(input.sizes.begin(), 1);
    input.strides.insert(input.strides.begin(), input.sizes[1] * input.strides[0]);
  }
  return mergeLeading(input, 3);
}

bool launchMean(const Place &x, const Place &result, BucketBuilder &builder) {
  return launch({.kernel = kernelNamed("mean_rows", x.dtype),
                 .blocks = x.sizes[0] * meanSlices(x.sizes[2], x.dtype),
                 .threads = kMeanThreads,
                 .reads = {x},
                 .writes = {result}},
                builder);
}

} // namespace

Status lowerMean(const ir::Node &node, BucketBuilder &builder) {
  const std::optional<Place> rows = batchesOfRows(node, builder.place(node.arg("self").value()));
  Place result = builder.allocate(*node.result());
  if (!rows || !launchMean(*rows, result, builder))
    builder.callInto("aten::mean", "out", callArgs(node, builder), result);
  return Status::ok();
}

} // namespace cgc::backend

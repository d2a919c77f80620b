// cgc.embedding_backward: cgc's own kernel on cuda, into zeros; else sums of rows by LibTorch.
// Unlike its embedding_dense_backward, these calls check the indices.
#include "runtime/kernels/rowwise/embedding_backward.h"
#include "backend/kernels.h"
#include "backend/lowering.h"

namespace cgc::backend {
namespace {

bool launchKernel(const ir::Node &node, const Place &grad, const Place &indices,
                  const Place &result, BucketBuilder &builder) {
  constexpr int64_t kColumns = kEmbeddingBackwardColumns;
  const Launch sums = {.kernel = kernelNamed("embedding_backward", grad.dtype),
                       .blocks = uint64_t(indices.sizes[0]),
                       .threads = kEmbeddingBackwardThreads,
                       .reads = {grad, indices},
                       .writes = {result},
                       .ints = {node.arg("padding_idx").as<int64_t>()},
                       .blocksY = uint32_t((result.sizes[1] + kColumns - 1) / kColumns)};
  if (!takes(sums, builder))
    return false;
  builder.fill(result, 0);
  return launch(sums, builder);
}

} // namespace

Status lowerEmbeddingBackward(const ir::Node &node, BucketBuilder &builder) {
  const Place result = builder.allocate(*node.result());
  Place grad = densePlace(builder.place(node.arg("grad_output").value()), builder);
  Place indices = densePlace(builder.place(node.arg("indices").value()), builder);
  const int64_t rows = indices.type().numElements();
  if (rows == 0) { // index_add would look for the first row.
    builder.fill(result, 0);
    return Status::ok();
  }
  grad.sizes = {rows, grad.sizes.back()};
  grad.strides = ir::contiguousStrides(grad.sizes);
  indices.sizes = {rows};
  indices.strides = {1};
  if (launchKernel(node, grad, indices, result, builder))
    return Status::ok();
  Place zeros = scalarTensor(0, result.dtype, builder);
  zeros.sizes = result.sizes;
  zeros.strides.assign(2, 0);
  // Both add the rows of an index in a fixed order: index_add only on a CPU.
  if (builder.target() == DeviceKind::Cpu)
    builder.callInto("aten::index_add", "out",
                     {builder.tensor(zeros), int64_t{0}, builder.tensor(indices),
                      builder.tensor(grad), int64_t{1}},
                     result);
  else
    builder.callThenCopy("aten::index_put", "",
                         {builder.tensor(zeros), std::vector<TensorId>{builder.tensor(indices)},
                          builder.tensor(grad), true},
                         {result});
  const int64_t padding = node.arg("padding_idx").as<int64_t>();
  if (padding >= 0) {
    Place row = result;
    row.sizes = {result.sizes[1]};
    row.strides = {result.strides[1]};
    row.offset += static_cast<uint64_t>(padding * result.strides[0]) * dtypeSize(result.dtype);
    builder.fill(row, 0);
  }
  return Status::ok();
}

} // namespace cgc::backend

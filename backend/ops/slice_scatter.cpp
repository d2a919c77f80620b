// slice_scatter and select_scatter: a copy of the tensor, and a copy into a view of it.
#include "backend/lowering.h"
#include "ir/op_def.h"
#include "ir/op_views.h"

namespace cgc::backend {
namespace {

/// Copies `self` to the result of the node, then `src` to its view by `view` with `args`, of which
/// the first is the result.
Status replaceView(ir::Value *self, ir::Value *src, ir::OpKind view, llvm::ArrayRef<ir::Arg> args,
                   BucketBuilder &builder) {
  Place part = builder.allocate(*args.front().value());
  builder.copy(builder.place(self), part);
  CGC_ASSIGN_OR_RETURN(auto inferred, ir::inferResults(view, args, builder.target()));
  const ir::TensorType &type = inferred.front().type;
  if (type.numElements() == 0)
    return Status::ok();
  part.sizes = type.sizes;
  part.strides = type.strides;
  part.offset += static_cast<uint64_t>(*inferred.front().viewOffset) * dtypeSize(part.dtype);
  builder.copy(builder.place(src), part);
  return Status::ok();
}

} // namespace

Status lowerSliceScatter(const ir::Node &node, BucketBuilder &builder) {
  const auto op = ir::SliceScatterOp::of(node);
  return replaceView(
      op->self(), op->src(), ir::OpKind::Slice,
      {op->result(), node.arg("dim"), node.arg("start"), node.arg("end"), node.arg("step")},
      builder);
}

Status lowerSelectScatter(const ir::Node &node, BucketBuilder &builder) {
  const auto op = ir::SelectScatterOp::of(node);
  return replaceView(op->self(), op->src(), ir::OpKind::Select,
                     {op->result(), node.arg("dim"), node.arg("index")}, builder);
}

} // namespace cgc::backend

// clamp and clamp_min: LibTorch has one overload for bounds that are numbers and one for tensors.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerClamp(const ir::Node &node, BucketBuilder &builder) {
  bool numbers =
      llvm::none_of(node.args().drop_front(), [](const ir::Arg &a) { return a.isValue(); });
  builder.callInto(node.is(ir::OpKind::Clamp) ? "aten::clamp" : "aten::clamp_min",
                   numbers ? "out" : "Tensor_out", callArgs(node, builder),
                   builder.allocate(*node.result()));
  return Status::ok();
}

} // namespace cgc::backend

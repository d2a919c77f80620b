// cgc.add_layer_norm: the sum, then its layer normalisation.
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerAddLayerNorm(const ir::Node &node, BucketBuilder &builder) {
  Place sum = builder.allocate(*node.result(0)), normalized = builder.allocate(*node.result(1));
  builder.callInto("aten::add", "out",
                   {builder.arg(node.arg("input")), builder.arg(node.arg("addend")), int64_t{1}},
                   sum);
  std::vector<int64_t> shape = {sum.sizes.back()};
  builder.callThenCopy("aten::layer_norm", "",
                       {builder.tensor(sum), shape, builder.arg(node.arg("weight")),
                        builder.arg(node.arg("bias")), builder.arg(node.arg("eps")), true},
                       {normalized});
  return Status::ok();
}

} // namespace cgc::backend

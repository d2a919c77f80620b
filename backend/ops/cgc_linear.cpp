// cgc.linear: the product, the activation and the residual, one after the other.
#include "backend/ops/linear.h"

namespace cgc::backend {

Status lowerFusedLinear(const ir::Node &node, BucketBuilder &builder) {
  Place input = builder.place(node.arg("input").value());
  Place weight = builder.place(node.arg("weight").value());
  const std::string &activation = node.arg("activation").as<std::string>();
  const ir::Arg &residual = node.arg("residual");
  Place result = builder.allocate(*node.result());
  bool activates = activation != "none", adds = !residual.isNone();

  // The last step writes the result.
  auto scratch = [&] { return builder.temporary(result.dtype, result.sizes); };
  Place product = activates || adds ? scratch() : result;
  multiplyInto(input, weight, node.arg("bias"), product, builder);
  Place activated = activates ? (adds ? scratch() : result) : product;
  if (activates)
    activateInto(activation, product, activated, builder);
  if (adds)
    builder.callInto("aten::add", "out",
                     {builder.arg(residual), builder.tensor(activated), int64_t{1}}, result);
  return Status::ok();
}

} // namespace cgc::backend

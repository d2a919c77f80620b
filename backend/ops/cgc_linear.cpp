// cgc.linear: one product with what fits into it, then the rest in place.
#include "backend/kernels.h"
#include "backend/ops/activation.h"
#include "backend/product.h"

namespace cgc::backend {

Status lowerFusedLinear(const ir::Node &node, BucketBuilder &builder) {
  auto optional = [&](const char *name) {
    const ir::Arg &arg = node.arg(name);
    return arg.isNone() ? std::nullopt : std::optional(builder.place(arg.value()));
  };
  Product product;
  product.x = builder.place(node.arg("input").value());
  product.weight = builder.place(node.arg("weight").value());
  product.bias = optional("bias");
  product.residual = optional("residual");
  product.activation = activationNamed(node.arg("activation").as<std::string>());
  product.result = builder.allocate(*node.result());
  CGC_ASSIGN_OR_RETURN(Remainder rest, lowerProduct(product, builder));
  const Place &result = product.result;
  if (rest.activation)
    activate(product.activation, result, result, builder);
  if (rest.residual &&
      !launchElementwise(ElementwiseOp::Add, result, product.residual, 0, result, builder))
    builder.callInto("aten::add", "out",
                     {builder.tensor(*product.residual), builder.tensor(result), int64_t{1}},
                     result);
  return Status::ok();
}

} // namespace cgc::backend

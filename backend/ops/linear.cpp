// linear: one GEMM with the bias in its epilogue.
#include "backend/lower_gemm.h"
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerLinear(const ir::Node &node, BucketBuilder &builder) {
  Product product;
  product.x = builder.place(node.arg("input").value());
  product.weight = builder.place(node.arg("weight").value());
  if (const ir::Arg &bias = node.arg("bias"); !bias.isNone())
    product.bias = builder.place(bias.value());
  product.result = builder.allocate(*node.result());
  return lowerProduct(product, builder).status();
}

} // namespace cgc::backend

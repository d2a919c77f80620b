// linear: one GEMM with the bias in its epilogue.
#include "backend/lower_gemm.h"
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerLinear(const ir::Node &node, BucketBuilder &builder) {
  GemmPlaces operands;
  operands.x = builder.place(node.arg("input").value());
  operands.w = builder.place(node.arg("weight").value());
  if (const ir::Arg &bias = node.arg("bias"); !bias.isNone())
    operands.bias = builder.place(bias.value());
  operands.y = builder.allocate(*node.result());
  return lowerGemm(operands, Activation::None, builder).status();
}

} // namespace cgc::backend

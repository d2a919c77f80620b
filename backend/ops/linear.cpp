// linear: one GEMM with the bias in its epilogue.
#include "backend/lower_gemm.h"
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerLinear(const ir::Node &node, BucketBuilder &builder) {
  Gemm gemm;
  gemm.x = builder.place(node.arg("input").value());
  gemm.weight = builder.place(node.arg("weight").value());
  if (const ir::Arg &bias = node.arg("bias"); !bias.isNone())
    gemm.bias = builder.place(bias.value());
  gemm.result = builder.allocate(*node.result());
  return lowerGemm(gemm, builder).status();
}

} // namespace cgc::backend

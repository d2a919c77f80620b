// linear: one GEMM with the bias in its epilogue.
#include "backend/lower_gemm.h"
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerLinear(const ir::Node &node, BucketBuilder &builder) {
  const GemmPlaces gemm{.x = builder.place(node.arg("input").value()),
                        .w = builder.place(node.arg("weight").value()),
                        .bias = builder.optionalPlace(node.arg("bias")),
                        .y = builder.allocate(*node.result())};
  if (!lowerGemm(gemm, {}, builder))
    callLinear(gemm, builder);
  return Status::ok();
}

} // namespace cgc::backend

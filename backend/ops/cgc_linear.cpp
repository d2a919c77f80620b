// cgc.linear: one GEMM with the epilogue that it supports, then the remaining steps in place.
#include "backend/ops/cgc_linear.h"

#include "backend/kernels.h"
#include "backend/ops/lower_activation.h"

namespace cgc::backend {

Status lowerWholeGemm(const Gemm &gemm, BucketBuilder &builder) {
  CGC_ASSIGN_OR_RETURN(Remainder rest, lowerGemm(gemm, builder));
  const Place &result = gemm.result;
  if (rest.activation)
    activate(gemm.activation, result, result, builder);
  if (rest.residual &&
      !launchElementwise(ElementwiseOp::Add, result, gemm.residual, 0, result, builder))
    builder.callInto("aten::add", "out",
                     {builder.tensor(*gemm.residual), builder.tensor(result), int64_t{1}}, result);
  return Status::ok();
}

Status lowerFusedLinear(const ir::Node &node, BucketBuilder &builder) {
  auto optional = [&](const char *name) {
    const ir::Arg &arg = node.arg(name);
    return arg.isNone() ? std::nullopt : std::optional(builder.place(arg.value()));
  };
  return lowerWholeGemm({.x = builder.place(node.arg("input").value()),
                         .weight = builder.place(node.arg("weight").value()),
                         .bias = optional("bias"),
                         .residual = optional("residual"),
                         .activation = activationNamed(node.arg("activation").as<std::string>()),
                         .result = builder.allocate(*node.result())},
                        builder);
}

} // namespace cgc::backend

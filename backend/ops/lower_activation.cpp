// Activations of cgc.linear that the GEMM did not fuse.
#include "backend/ops/lower_activation.h"

#include "backend/kernels.h"

#include "llvm/ADT/StringSwitch.h"

namespace cgc::backend {
namespace {

ElementwiseOp elementwiseOp(Activation activation) {
  switch (activation) {
  case Activation::Gelu:
    return ElementwiseOp::Gelu;
  case Activation::GeluTanh:
    return ElementwiseOp::GeluTanh;
  case Activation::QuickGelu:
    return ElementwiseOp::QuickGelu;
  case Activation::Silu:
    return ElementwiseOp::Silu;
  case Activation::Relu:
    return ElementwiseOp::Relu;
  case Activation::Tanh:
    return ElementwiseOp::Tanh;
  case Activation::None:
    break;
  }
  llvm_unreachable("None is no op");
}

} // namespace

Activation activationNamed(llvm::StringRef name) {
  return llvm::StringSwitch<Activation>(name)
      .Case("gelu", Activation::Gelu)
      .Case("gelu_tanh", Activation::GeluTanh)
      .Case("quick_gelu", Activation::QuickGelu)
      .Case("silu", Activation::Silu)
      .Case("relu", Activation::Relu)
      .Case("tanh", Activation::Tanh)
      .Case("none", Activation::None);
}

void activate(Activation activation, const Place &input, const Place &result,
              BucketBuilder &builder) {
  if (launchElementwise(elementwiseOp(activation), input, std::nullopt, 0, result, builder))
    return;
  AtenArg x = builder.tensor(input);
  switch (activation) {
  case Activation::QuickGelu: {
    Place gate = builder.temporary(input.dtype, input.sizes);
    builder.callInto("aten::mul", "out", {x, 1.702}, gate);
    builder.callInto("aten::sigmoid", "out", {builder.tensor(gate)}, gate);
    builder.callInto("aten::mul", "out", {x, builder.tensor(gate)}, result);
    return;
  }
  case Activation::Gelu:
    return builder.callInto("aten::gelu", "out", {x, std::string("none")}, result);
  case Activation::GeluTanh:
    return builder.callInto("aten::gelu", "out", {x, std::string("tanh")}, result);
  case Activation::Relu:
    return builder.callInto("aten::clamp_min", "out", {x, int64_t{0}}, result);
  case Activation::Silu:
    return builder.callInto("aten::silu", "out", {x}, result);
  case Activation::Tanh:
    return builder.callInto("aten::tanh", "out", {x}, result);
  case Activation::None:
    break;
  }
  llvm_unreachable("None is no call");
}

} // namespace cgc::backend

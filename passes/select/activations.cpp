// activationOf: the ops that are activations of a GEMM's epilogue.
#include "passes/select/activations.h"

namespace cgc::passes {

const char *activationOf(const ir::Node &node) {
  switch (node.op()) {
  case ir::OpKind::Gelu:
    return node.arg("approximate") == ir::Arg("tanh") ? "gelu_tanh" : "gelu";
  case ir::OpKind::CgcQuickGelu:
    return "quick_gelu";
  case ir::OpKind::Silu:
    return "silu";
  case ir::OpKind::Relu:
    return "relu";
  case ir::OpKind::Tanh:
    return "tanh";
  default:
    return nullptr;
  }
}

} // namespace cgc::passes

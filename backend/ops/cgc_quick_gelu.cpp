// cgc.quick_gelu, and the other activations of cgc.linear.
#include "backend/ops/linear.h"

namespace cgc::backend {

void activateInto(llvm::StringRef activation, const Place &input, const Place &result,
                  BucketBuilder &builder) {
  AtenArg x = builder.tensor(input);
  if (activation == "quick_gelu") {
    Place gate = builder.temporary(input.dtype, input.sizes);
    builder.callInto("aten::mul", "out", {x, 1.702}, gate);
    builder.callInto("aten::sigmoid", "out", {builder.tensor(gate)}, gate);
    builder.callInto("aten::mul", "out", {x, builder.tensor(gate)}, result);
  } else if (activation == "gelu" || activation == "gelu_tanh") {
    std::string approximate = activation == "gelu" ? "none" : "tanh";
    builder.callInto("aten::gelu", "out", {x, approximate}, result);
  } else if (activation == "relu") {
    builder.callInto("aten::clamp_min", "out", {x, int64_t{0}}, result);
  } else {
    assert(activation == "silu" || activation == "tanh");
    builder.callInto("aten::" + activation.str(), "out", {x}, result);
  }
}

Status lowerQuickGelu(const ir::Node &node, BucketBuilder &builder) {
  Place input = builder.place(node.arg("self").value());
  activateInto("quick_gelu", input, builder.allocate(*node.result()), builder);
  return Status::ok();
}

} // namespace cgc::backend

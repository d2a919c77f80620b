// cgc.normalize: one kernel on cuda; else the norm, clamped to at least eps, then the quotient.
#include "backend/kernels.h"
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerNormalize(const ir::Node &node, BucketBuilder &builder) {
  Place input = builder.place(node.arg("input").value());
  Place result = builder.allocate(*node.result());
  int64_t elements = input.type().numElements();
  if (elements > 0 &&
      launchWarpRows(kernelNamed("normalize", input.dtype), elements / input.sizes.back(), {input},
                     result, builder, {*node.arg("eps").asNumber()}))
    return Status::ok();
  ir::Dims sizes = input.sizes;
  sizes.back() = 1;
  Place norm = builder.temporary(input.dtype, sizes);
  Place bounded = builder.temporary(input.dtype, sizes);
  builder.callInto("aten::linalg_vector_norm", "out",
                   {builder.tensor(input), int64_t{2}, std::vector<int64_t>{-1}, true, NoneArg{}},
                   norm);
  builder.callInto("aten::clamp_min", "out", {builder.tensor(norm), builder.arg(node.arg("eps"))},
                   bounded);
  builder.callInto("aten::div", "out", {builder.tensor(input), builder.tensor(bounded)}, result);
  return Status::ok();
}

} // namespace cgc::backend

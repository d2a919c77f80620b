// argmax: cgc's own kernel over the last dimension on cuda; else LibTorch.
#include "backend/kernels.h"
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerArgmax(const ir::Node &node, BucketBuilder &builder) {
  Place input = builder.place(node.arg("self").value());
  Place result = builder.allocate(*node.result());
  auto rank = static_cast<int64_t>(input.sizes.size()), elements = input.type().numElements();
  Place rows = input;
  bool isLast = rank > 0;
  if (const ir::Arg &dim = node.arg("dim"); !dim.isNone())
    isLast = isLast && (dim.as<int64_t>() + rank) % rank == rank - 1;
  else if (auto flat = isLast ? mergeLeading(input, 1) : std::nullopt)
    rows = *flat;
  else
    isLast = false;
  if (isLast && elements > 0 &&
      launchWarpRows(kernelNamed("argmax", input.dtype), elements / rows.sizes.back(), {rows},
                     result, builder))
    return Status::ok();
  builder.callInto("aten::argmax", "out", callArgs(node, builder), result);
  return Status::ok();
}

} // namespace cgc::backend

// matmul: on cuda a GEMM for a matrix on the right; else LibTorch's mm or bmm on views where the
// batch dimensions allow it.
#include "backend/lower_gemm.h"
#include "backend/lowering.h"

namespace cgc::backend {

Status lowerMatmul(const ir::Node &node, BucketBuilder &builder) {
  Place a = builder.place(node.arg("self").value());
  Place b = builder.place(node.arg("other").value());
  Place result = builder.allocate(*node.result());
  size_t rankA = a.sizes.size(), rankB = b.sizes.size();

  std::optional<Place> viewA, viewB, viewResult;
  const char *op = nullptr;
  if (rankA >= 2 && rankB == 2) {
    op = "aten::mm";
    viewA = mergeLeading(a, 2);
    viewB = b;
    viewResult = mergeLeading(result, 2);
  } else if (rankA >= 3 && rankA == rankB &&
             llvm::ArrayRef(a.sizes).drop_back(2) == llvm::ArrayRef(b.sizes).drop_back(2)) {
    op = "aten::bmm";
    viewA = mergeLeading(a, 3);
    viewB = mergeLeading(b, 3);
    viewResult = mergeLeading(result, 3);
  }
  if (viewA && viewB && viewResult &&
      lowerGemm({.x = *viewA, .w = transposed(*viewB), .y = *viewResult}, {}, builder,
                GemmUse::Product))
    return Status::ok();
  if (viewA && viewB && viewResult)
    builder.callInto(op, "out", {builder.tensor(*viewA), builder.tensor(*viewB)}, *viewResult);
  else
    builder.callThenCopy("aten::matmul", "", callArgs(node, builder), {result});
  return Status::ok();
}

} // namespace cgc::backend

// aten.col2im: the sum of columns at the places of their windows.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {
namespace {

Status inferCol2im(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  if (!isFloating(self.dtype))
    return rules::mismatch("self", "of a floating dtype", self);
  const Dims image = args.ints("output_size");
  if (image.size() != 2 || image[0] < 1 || image[1] < 1)
    return rules::refuse("expected 'output_size' to be two numbers of at least 1, got " +
                         rules::toString(image));
  CGC_ASSIGN_OR_RETURN(rules::Columns columns, rules::columnsOf(args, "output_size", image));
  if ((self.rank() != 2 && self.rank() != 3) || self.sizes[self.rank() - 2] == 0 ||
      self.sizes[self.rank() - 2] % columns.rows != 0 || self.sizes.back() != columns.count)
    return rules::mismatch("self",
                           "[N, C * " + llvm::Twine(columns.rows) + ", " +
                               llvm::Twine(columns.count) + "], as the windows of 'output_size'",
                           self);
  Dims sizes(llvm::ArrayRef(self.sizes).drop_back(2));
  sizes.append({self.sizes[self.rank() - 2] / columns.rows, image[0], image[1]});
  return rules::addDense(results, self.dtype, sizes);
}

} // namespace

const OpDef defs::Col2im = {
    .schema = "(Tensor self, int[] output_size, int[] kernel_size, int[] dilation, int[] padding, "
              "int[] stride) -> Tensor",
    .traits = kPure | kMove,
    .infer = inferCol2im,
    .aten = "copy aten::col2im",
    .batch = batch::allButLast<2>,
    .gradient = [](GradientBuilder &b) -> Status {
      b.set("self", b.call(OpKind::Im2col, {b.grad(), b.arg("kernel_size"), b.arg("dilation"),
                                            b.arg("padding"), b.arg("stride")}));
      return Status::ok();
    },
    .doc = "The adjoint of im2col: columns self [N, C * KH * KW, windows] (or without N) added "
           "where im2col takes them from an image of output_size: [N, C, OH, OW].",
};

} // namespace cgc::ir

// aten.im2col: the windows of an image as columns.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {
namespace {

Status inferIm2col(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  if ((self.rank() != 3 && self.rank() != 4) || llvm::ArrayRef(self.sizes).take_back(3)[0] == 0 ||
      llvm::ArrayRef(self.sizes).take_back(2)[0] == 0 || self.sizes.back() == 0)
    return rules::mismatch("self", rules::imageSizes(2) + ", nonempty but for its batch", self);
  if (!isFloating(self.dtype))
    return rules::mismatch("self", "of a floating dtype", self);
  CGC_ASSIGN_OR_RETURN(rules::Columns columns, rules::columnsOf(args, "self", self.sizes));
  Dims sizes(llvm::ArrayRef(self.sizes).drop_back(3));
  sizes.append({self.sizes[self.rank() - 3] * columns.rows, columns.count});
  return rules::addDense(results, self.dtype, sizes);
}

} // namespace

const OpDef defs::Im2col = {
    .schema = "(Tensor self, int[] kernel_size, int[] dilation, int[] padding, int[] stride) -> "
              "Tensor",
    .traits = kPure | kMove,
    .infer = inferIm2col,
    .aten = "copy aten::im2col",
    .batch = batch::allButLast<3>,
    .gradient = [](GradientBuilder &b) -> Status {
      const Dims image(llvm::ArrayRef(b.input("self")->tensor().sizes).take_back(2));
      b.set("self", b.call(OpKind::Col2im, {b.grad(), Arg::ints(image), b.arg("kernel_size"),
                                            b.arg("dilation"), b.arg("padding"), b.arg("stride")}));
      return Status::ok();
    },
    .doc = "The windows of self [N, C, H, W] (or without N), padded with zeros, each of which "
           "becomes a column: [N, C * KH * KW, windows].",
};

} // namespace cgc::ir

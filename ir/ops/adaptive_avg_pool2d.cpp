// aten.adaptive_avg_pool2d: average pooling to a given output size.
#include "ir/ops/rules.h"

#include "llvm/ADT/STLExtras.h"

namespace cgc::ir {
namespace {

Status infer(const InferArgs &args, rules::Results &results) {
  const TensorType &self = args.tensor("self");
  if (self.rank() != 3 && self.rank() != 4)
    return rules::mismatch("self", "[N, C, H, W] or [C, H, W]", self);
  if (llvm::is_contained(llvm::ArrayRef(self.sizes).take_back(2), 0))
    return rules::mismatch("self", "an image with rows and columns", self);
  if (!isFloating(self.dtype))
    return rules::mismatch("self", "of a floating dtype", self);
  Dims output = args.ints("output_size");
  if (output.size() != 2)
    return rules::refuse("expected 'output_size' to have two elements, got " +
                         rules::toString(output));
  Dims sizes(llvm::ArrayRef(self.sizes).drop_back(2));
  sizes.append(output);
  return rules::addDense(results, self.dtype, sizes);
}

} // namespace

const OpDef defs::AdaptiveAvgPool2d = {
    .schema = "(Tensor self, int[] output_size) -> Tensor",
    .traits = kPure | kReduction,
    .infer = infer,
    .aten = "copy aten::adaptive_avg_pool2d",
    .doc = "Averages of self [N, C, H, W] (or without N) over windows chosen such that the result "
           "is [N, C, output_size].",
};

} // namespace cgc::ir

// aten.reflection_pad2d: padding with mirrored elements.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {

const OpDef defs::ReflectionPad2d = {
    .schema = "(Tensor self, int[] padding) -> Tensor",
    .traits = kPure | kMove,
    .infer = rules::reflectionPad<2>,
    .batch = batch::allButLast<2>,
    .gradient = [](GradientBuilder &b) { return gradient::padded(b, 2, /*mirrored=*/true); },
    .doc = "self [N, C, H, W] or [C, H, W] padded by its mirror image: padding[0] elements before "
           "and padding[1] "
           "after it in the last dimension, then in the one before; negative numbers crop.",
};

} // namespace cgc::ir

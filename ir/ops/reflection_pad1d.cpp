// aten.reflection_pad1d: padding with mirrored elements.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {

const OpDef defs::ReflectionPad1d = {
    .schema = "(Tensor self, int[] padding) -> Tensor",
    .traits = kPure | kMove,
    .infer = rules::reflectionPad<1>,
    .batch = batch::allButLast<1>,
    .gradient = [](GradientBuilder &b) { return gradient::padded(b, 1, /*mirrored=*/true); },
    .doc = "self [N, C, W] or [C, W] padded by its mirror image: padding[0] elements before and "
           "padding[1] "
           "after it in the last dimension; negative numbers crop.",
};

} // namespace cgc::ir

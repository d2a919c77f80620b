// aten.sub: difference.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Sub = {
    .schema = "(Tensor|number self, Tensor|number other, number alpha=1) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::difference,
    .evaluate = host::sub,
    .gradient = [](GradientBuilder &b) { return gradient::difference(b, 1); },
    .doc = "self - alpha * other, broadcast, dtypes promoted.",
};

} // namespace cgc::ir

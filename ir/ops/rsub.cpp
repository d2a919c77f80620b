// aten.rsub: reversed difference.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Rsub = {
    .schema = "(Tensor|number self, Tensor|number other, number alpha=1) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::difference,
    .evaluate = host::rsub,
    .aten = "aten::sub.out(other, self, alpha)",
    .gradient = [](GradientBuilder &b) { return gradient::difference(b, -1); },
    .doc = "other - alpha * self, broadcast, dtypes promoted.",
};

} // namespace cgc::ir

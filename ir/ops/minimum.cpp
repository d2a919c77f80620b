// aten.minimum: elementwise minimum of two tensors.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Minimum = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::extremum,
    .evaluate = host::minimum,
    .gradient = [](GradientBuilder &b) { return gradient::extremum(b, OpKind::Gt, OpKind::Lt); },
    .doc = "The smaller of self and other, broadcast, dtypes promoted; both tensors or, as sizes, "
           "both numbers. NaN propagates.",
};

} // namespace cgc::ir

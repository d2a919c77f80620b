// aten.maximum: elementwise maximum of two tensors.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Maximum = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::extremum,
    .evaluate = host::maximum,
    .gradient = [](GradientBuilder &b) { return gradient::extremum(b, OpKind::Lt, OpKind::Gt); },
    .doc = "The larger of self and other, broadcast, dtypes promoted; both tensors or, as sizes, "
           "both numbers. NaN propagates.",
};

} // namespace cgc::ir

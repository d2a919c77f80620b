// aten.maximum: the larger of two.
#include "ir/ops/host_math.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Maximum = {
    .schema = "(Tensor|number self, Tensor|number other) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::extremum,
    .evaluate = host::maximum,
    .doc = "The larger of self and other, broadcast, dtypes promoted; both tensors or, as sizes, "
           "both numbers. NaN wins.",
};

} // namespace cgc::ir

// aten.hardtanh: clamping to an interval.
#include "ir/ops/gradient_rules.h"
#include "ir/ops/rules.h"

namespace cgc::ir {

const OpDef defs::Hardtanh = {
    .schema = "(Tensor self, number min_val=-1, number max_val=1) -> Tensor",
    .traits = kPure | kPointwise,
    .infer = rules::unaryFloating,
    .gradient =
        [](GradientBuilder &b) {
          b.set("self", gradient::inside(b, b.number("min_val"), b.number("max_val")));
          return Status::ok();
        },
    .doc = "self clamped to [min_val, max_val], elementwise; floating dtypes.",
};

} // namespace cgc::ir
